"""Families of comparisons: the whole table, its warnings, and what missing runs do to it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ltga.errors import InputError
from ltga.nn.methods import METHODS
from ltga.study.stats import (
    PRIMARY,
    Family,
    Scores,
    compare,
    compare_across_datasets,
    compare_by_init,
    holm,
    paired_test,
)
from ltga.study.stats.scores import CATALOGUE

TWO = Family("two", ("ltga-edge", "ltga-head"), "gatv2", ("cora", "texas"))


def scores(seeds=10, better="higher", drop=(), shift=0.02, noise=0.01):
    """GATv2 around 0.5; LTGA-Edge better by ``shift`` on texas only; LTGA-Head the same runs as GATv2."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in TWO.datasets:
        for seed in range(1, seeds + 1):
            base = 0.5 + rng.normal(0, 0.05)
            gain = shift * (dataset == "texas") + rng.normal(0, noise)
            for method, value in (("gatv2", base), ("ltga-head", base), ("ltga-edge", base + gain)):
                if (method, dataset, seed) not in drop:
                    rows.append((method, dataset, seed, value))
    return Scores(pd.DataFrame(rows, columns=["method", "dataset", "seed", "value"]), better)


def row(table, dataset, method):
    return table[(table["dataset"] == dataset) & (table["method"] == method)].iloc[0]


def test_the_primary_family_is_small_frozen_and_able_to_decide():
    assert set(PRIMARY.methods) | {PRIMARY.control} <= set(METHODS)
    assert set(PRIMARY.datasets) <= set(CATALOGUE)
    assert len(PRIMARY) == len(list(PRIMARY)) == 14
    assert len(PRIMARY) * stats.wilcoxon(np.arange(1, 11)).pvalue < 0.05  # ten seeds suffice
    with pytest.raises(AttributeError):
        PRIMARY.control = "gat"
    assert PRIMARY.on(["texas"]).datasets == ("texas",)


def test_families_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="control: gatv2 is also among"):
        Family("bad", ("gat", "gatv2"), "gatv2", ("cora",))
    with pytest.raises(InputError, match="methods: got"):
        Family("bad", (), "gatv2", ("cora",))
    with pytest.raises(InputError, match="datasets: got"):
        Family("bad", ("gat",), "gatv2", ("cora", "cora"))


def test_every_column_of_a_comparison():
    all_scores = scores()
    table = compare(all_scores, TWO)
    assert len(table) == 4
    edge = row(table, "texas", "ltga-edge")
    first, second, *_ = all_scores.pairs("ltga-edge", "gatv2", "texas")
    assert edge["p"] == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert edge["test"] == "paired t"
    assert edge["improvement"] == pytest.approx((first - second).mean())
    assert edge["low"] < edge["improvement"] < edge["high"]
    assert edge["wins"] == (first > second).sum()
    assert edge["probability"] == edge["wins"] / 10
    np.testing.assert_allclose(table["p_holm"], holm(table["p"]))
    assert edge["significant"]
    assert edge["reachable"]
    assert edge["note"] == ""


def test_equal_runs_and_shared_splits_are_said():
    table = compare(scores(), TWO)
    head = row(table, "cora", "ltga-head")
    assert (head["ties"], head["p"], head["significant"], head["reachable"]) == (10, 1.0, False, False)
    assert head["note"].startswith("the same on every seed")
    assert "share one split" in head["note"]
    assert table.set_index("dataset")["single_split"].groupby(level=0).first().to_dict() == {
        "cora": True,
        "texas": False,
    }


def test_lower_can_be_better():
    higher, lower = compare(scores(), TWO), compare(scores(better="lower"), TWO)
    up, down = row(higher, "texas", "ltga-edge"), row(lower, "texas", "ltga-edge")
    assert down["improvement"] == pytest.approx(-up["improvement"])
    assert (down["wins"], down["losses"]) == (up["losses"], up["wins"])
    assert down["low"] < down["improvement"] < down["high"] < 0
    assert down["p"] == pytest.approx(up["p"])


def test_missing_runs_stay_in_the_family():
    drop = [("ltga-edge", "cora", seed) for seed in range(1, 11)] + [("gatv2", "texas", 3)]
    table = compare(scores(drop=drop), TWO)
    missing = row(table, "cora", "ltga-edge")
    assert (missing["n"], missing["note"], missing["significant"]) == (0, "not run", False)
    assert np.isnan(missing["p_holm"])
    edge = row(table, "texas", "ltga-edge")
    assert (edge["n"], edge["unpaired"]) == (9, 1)
    assert "1 seeds without partner left out" in edge["note"]
    assert edge["p_holm"] == pytest.approx(4 * edge["p"])  # four comparisons were declared


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_or_two_seeds_give_no_test(seeds):
    edge = row(compare(scores(seeds=seeds), TWO), "texas", "ltga-edge")
    assert edge["test"] == "none"
    assert not edge["significant"]
    assert "too few seeds" in edge["note"]
    assert np.isnan(edge["low"]) == (seeds == 1)


def test_a_test_that_cannot_succeed_is_called_out():
    """Five seeds, all won by far, differences far from normal: Wilcoxon's smallest p is 0.0625."""
    gains = np.array([0.1, 0.1001, 0.1002, 0.1003, 0.9])
    frame = pd.DataFrame(
        {
            "method": ["ltga-edge"] * 5 + ["gatv2"] * 5,
            "dataset": "texas",
            "seed": [1, 2, 3, 4, 5] * 2,
            "value": np.concatenate([gains, np.zeros(5)]),
        }
    )
    family = Family("one", ("ltga-edge",), "gatv2", ("texas",))
    edge = compare(Scores(frame), family).iloc[0]
    assert (edge["test"], edge["p"], edge["reachable"]) == ("Wilcoxon", 0.0625, False)
    assert edge["note"] == "Wilcoxon with 5 pairs that differ cannot reach 0.05: at best 0.062 after Holm over 1"


def test_the_two_initialisations_side_by_side():
    def record(method, seed, init, accuracy):
        config = {"method": method, "dataset": {"name": "texas", "fingerprint": "f"}, "seed": seed, "split": seed - 1}
        config |= {"protocol": {"init": init}, "major_version": 0}
        metrics = {"test": {"accuracy": accuracy}}
        return {"id": f"{method}{seed}{init}", "config": config, "interrupted": False, "metrics": metrics}

    rng = np.random.default_rng(5)
    family = Family("one", ("ltga-edge",), "gatv2", ("texas",))
    records = []
    for seed in range(1, 11):
        records += [record("gatv2", seed, init, 0.5) for init in ("paper", "paired")]
        records.append(record("ltga-edge", seed, "paper", 0.6 + rng.normal(0, 0.01)))
        records.append(record("ltga-edge", seed, "paired", 0.5))
    both = compare_by_init(iter(records), family).loc[("texas", "ltga-edge", "gatv2")]
    assert both["paper", "significant"]
    assert both["paper", "improvement"] == pytest.approx(0.1, abs=0.01)
    assert both["paired", "improvement"] == 0
    assert both["paired", "note"] == "the same on every seed"


def test_across_datasets():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(8, 4)), columns=list("abcd"))
    result = compare_across_datasets(table, "b").set_index("control")
    assert list(result.index) == ["a", "c", "d"]
    for other in "acd":
        alone = paired_test(table["b"].to_numpy(), table[other].to_numpy())
        assert result.loc[other, "p"] == alone.p
        assert result.loc[other, "cohens_d"] == alone.cohens_d
    np.testing.assert_allclose(result["p_holm"], holm(result["p"]))
    with pytest.raises(InputError, match="no column 'z'"):
        compare_across_datasets(table, "z")
    with pytest.raises(InputError, match="no other method"):
        compare_across_datasets(table[["b"]], "b")
    with pytest.raises(InputError, match="not a finite number"):
        compare_across_datasets(table.where(table > -0.5), "b")


def test_eight_datasets_and_fifteen_rivals_decide_nothing_by_wilcoxon():
    """The issue's example: 15 x 0.0078 = 0.117."""
    skewed = np.array([1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 90.0])
    table = pd.DataFrame({"best": skewed} | {f"rival {i}": np.zeros(8) for i in range(15)})
    result = compare_across_datasets(table, "best")
    assert (result["test"] == "Wilcoxon").all()
    assert (result["wins"] == 8).all()
    assert not result["reachable"].any()
    assert not result["significant"].any()
    assert result["smallest_p_holm"].to_numpy() == pytest.approx(15 / 128)
