"""Scores: what is accepted, what is refused and how the refusal reads."""

import copy
import re

import numpy as np
import pandas as pd
import pytest

from ltga.errors import InputError, LTGAError, RecordError
from ltga.study.stats import Scores, scores_from_records
from ltga.train.protocol import Protocol
from ltga.train.record import configuration, run_id


def table(**changes):
    columns = {
        "method": ["gat"] * 3 + ["gcn"] * 3,
        "dataset": "texas",
        "seed": [1, 2, 3] * 2,
        "value": [0.5, 0.6, 0.7, 0.4, 0.6, 0.8],
    }
    return pd.DataFrame(columns | changes)


def record(method="gat", dataset="texas", seed=1, split=None, accuracy=0.5, init="paper", **protocol):
    """A record as ltga.train.make_record shapes it, without the parts that the statistics do not read."""
    settings = Protocol(init=init, **protocol).model_dump()
    config = configuration(dataset, "f" * 64, seed - 1 if split is None else split, method, settings, seed)
    metrics = {"accuracy": accuracy, "macro_f1": accuracy / 2, "nll": 1.5, "brier": 0.4, "ece": 0.1}
    parts = {part: dict(metrics) for part in ("train", "val", "test")}
    return {"id": run_id(config), "config": config, "interrupted": False, "metrics": parts}


def test_pairs_are_matched_by_seed_not_by_order():
    shuffled = table().sample(frac=1, random_state=0)
    pairs = Scores(shuffled).pairs("gat", "gcn", "texas")
    np.testing.assert_array_equal(pairs.first, [0.5, 0.6, 0.7])
    np.testing.assert_array_equal(pairs.second, [0.4, 0.6, 0.8])
    assert pairs.seeds == (1, 2, 3)


def test_missing_partners_are_left_out_and_named():
    pairs = Scores(table().drop(index=4)).pairs("gat", "gcn", "texas")
    assert (pairs.seeds, pairs.unpaired) == ((1, 3), (2,))
    assert Scores(table()).pairs("gat", "gatv2", "texas").seeds == ()
    assert Scores(table()).pairs("gat", "gcn", "cora").unpaired == ()


def test_means_compare_the_same_seeds_only():
    means = Scores(table()).means()
    assert means.loc["texas"].to_dict() == pytest.approx({"gat": 0.6, "gcn": 0.6})
    short = Scores(table().drop(index=4))
    with pytest.raises(InputError, match=r"different seeds on texas .*gcn has only \[1, 3\].*on_common_seeds"):
        short.means()
    assert short.on_common_seeds().means().loc["texas", "gat"] == pytest.approx(0.6)
    assert sorted(short.on_common_seeds().table["seed"].unique()) == [1, 3]


def test_a_dataset_without_a_method_is_a_gap_in_the_means():
    extra = pd.DataFrame({"method": ["gat"], "dataset": ["cora"], "seed": [1], "value": [0.8]})
    means = Scores(pd.concat([table(), extra])).means()
    assert np.isnan(means.loc["cora", "gcn"])
    assert list(means.index) == ["texas", "cora"]


def test_single_public_splits_are_known():
    for dataset in ("cora", "citeseer", "pubmed"):
        assert Scores(table(dataset=dataset)).single_split(dataset)
    assert not Scores(table()).single_split("texas")
    assert not Scores(table(dataset="my own")).single_split("my own")
    assert Scores(table(split=0)).single_split("texas")  # what was run counts, not what the catalogue offers
    assert not Scores(table(split=[0, 1, 2] * 2)).single_split("texas")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (table().drop(columns="seed"), "no column 'seed'"),
        (table().iloc[:0], "no rows"),
        (table(value=[0.5, np.nan, 0.7, 0.4, 0.6, 0.8]), "missing value at method gat, dataset texas, seed 2"),
        (table(value=[0.5, np.inf, 0.7, 0.4, 0.6, 0.8]), "at method gat, dataset texas, seed 2 is inf"),
        (table(seed=[1, 1, 3] * 2), "more than one value at method gat, dataset texas, seed 1"),
        (table(value=["high"] * 6), "value a number"),
        (table(seed=["a", "b", "c"] * 2), "whole numbers"),
        ([1, 2, 3], "expected a pandas DataFrame, got list"),
    ],
)
def test_bad_tables_are_refused(bad, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Scores(bad)


def test_the_callers_table_is_left_alone():
    mine = table()
    before = mine.copy()
    Scores(mine).means()
    pd.testing.assert_frame_equal(mine, before)


def test_better_is_checked():
    with pytest.raises(InputError, match="better: got 'up'"):
        Scores(table(), better="up")


def test_scores_from_records():
    records = [record(method, seed=seed, accuracy=seed / 10) for method in ("gat", "gcn") for seed in (1, 2)]
    records.append(record("gat", init="paired", accuracy=0.99))
    scores = scores_from_records(records)
    assert scores.of("gat", "texas").to_dict() == {1: 0.1, 2: 0.2}
    assert scores.better == "higher"
    assert scores_from_records(records, init="paired").of("gat", "texas").to_dict() == {1: 0.99}
    assert scores_from_records(records, "macro_f1", part="val").of("gcn", "texas").to_dict() == {1: 0.05, 2: 0.1}
    for metric in ("nll", "brier", "ece"):
        assert scores_from_records(records, metric).direction == -1


def test_splits_come_from_the_records():
    one_split = [record(seed=seed, split=0) for seed in (1, 2)]
    assert scores_from_records(one_split).single_split("texas")
    assert not scores_from_records([record(seed=1), record(seed=2)]).single_split("texas")
    assert not scores_from_records([record(seed=1)]).single_split("texas")  # one seed shares with nobody
    assert scores_from_records([record(seed=1, dataset="cora")]).single_split("cora")


def changed(path, value):
    made = copy.deepcopy(record(seed=2))
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (record(), "more than one value at method gat, dataset texas, seed 1"),
        (record(seed=2, warmup=0), "protocol warmup is 20 in run .* and 0 in run"),
        (record(seed=2, num_layers=4), "protocol num_layers is 2 in run .* and 4 in run"),
        (changed(("config", "dataset", "fingerprint"), "0" * 64), "fingerprint of dataset texas is 'ffff"),
        (record("gcn", split=5), "split of seed 1 on texas is 0 in run .* and 5 in run"),
        (changed(("config", "major_version"), 7), "major_version is 0 in run .* and 7 in run"),
        (changed(("interrupted",), True), "was interrupted"),
        (changed(("metrics", "test", "accuracy"), None), "test accuracy of run .* is not a finite number"),
        ({"id": "x"}, "not a run record"),
        ("a string", "not a run record"),
    ],
)
def test_mixtures_are_refused(second, message):
    with pytest.raises(LTGAError, match=message):
        scores_from_records([record(), second])


def test_what_is_asked_for_must_exist():
    with pytest.raises(InputError, match=r"metric: got 'f1'; run .* has accuracy, macro_f1"):
        scores_from_records([record()], metric="f1")
    with pytest.raises(InputError, match="part: got 'exam'; pass one of train, val, test"):
        scores_from_records([record()], part="exam")
    with pytest.raises(RecordError, match="none with init='paired'"):
        scores_from_records([record()], init="paired")
    with pytest.raises(RecordError, match="none with init='paper'"):
        scores_from_records([])
