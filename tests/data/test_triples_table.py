"""Typed links in a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ltga as library
from fixtures.command_line import ltga  # noqa: F401
from ltga.data import Preparation, Triples, load_dataset, read_again
from ltga.errors import LTGAError


def family(folder: Path, suffix: str = "csv", **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [(f"p{at}.{step}", "parent", f"p{at}.{step + 1}") for at in range(20) for step in range(4)]
    rows += [(f"p{at}.{step}", "grandparent", f"p{at}.{step + 2}") for at in range(20) for step in range(3)]
    table = pd.DataFrame(rows, columns=["head", "relation", "tail"]).assign(**columns)
    table.to_csv(folder / "triples.csv", index=False) if suffix == "csv" else table.to_parquet(
        folder / "triples.parquet"
    )
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_held_out_was_seen_in_training(suffix: str, tmp_path: Path) -> None:
    found = load_dataset(family(tmp_path / "family", suffix))
    assert isinstance(found, Triples) and found.name == "family"
    assert (found.num_nodes, found.num_relations, found.relation_names) == (100, 2, ("grandparent", "parent"))
    train, val, test = found.split(0)
    assert [int(part.sum()) for part in (train, val, test)] == [119, 7, 14]
    seen = set(found.edge_index[:, train].flatten().tolist())
    assert set(found.edge_index.flatten().tolist()) == seen and set(found.edge_type[train].tolist()) == {0, 1}
    assert read_again(dict(found.reading or {})).fingerprint == found.fingerprint
    assert load_dataset(tmp_path / "family" / f"triples.{suffix}").fingerprint == found.fingerprint


def test_trained_predicted_and_explained_by_name(ltga: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = family(tmp_path / "family")
    run = library.fit(folder, "gatv2", protocol={"epochs": 1, "hidden_channels": 4, "heads": 1})
    record = run.save(tmp_path / "runs")
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    pairs.write_text("head,relation\np3.0,parent\n")
    assert ltga("predict", record, "--pairs", pairs, "--out", out).code == 0
    assert pd.read_csv(out)["predicted"][0].startswith("p")
    assert "typed link prediction" in ltga("check", folder).out


def test_given_splits_and_repeats(tmp_path: Path) -> None:
    found = load_dataset(family(tmp_path / "split", split=["val", "test", *["train"] * 138]))
    assert [int(part.sum()) for part in found.split(0)] == [138, 1, 1]
    folder = family(tmp_path / "twice")
    table = pd.read_csv(folder / "triples.csv")
    pd.concat([table, table[:2]]).to_csv(folder / "triples.csv", index=False)
    with pytest.warns(UserWarning, match="repeats an earlier triple"):
        assert len(load_dataset(folder).edge_type) == 140


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("head,relation\na,b\n", {}, "column 'tail' is missing; found head, relation"),
    ("head,relation,tail\n", {}, "there are no rows"),
    ("head,relation,tail\na,,b\n", {}, "row 1: relation is blank"),
    ("head,relation,tail\na,r,b\n", {}, "1 are too few to hold some out"),
    ("head,relation,tail,split\na,r,b,train\nb,s,c,val\n", {}, "relation 's' is in no triple of the train part"),
    ("head,relation,tail,split\na,r,b,dev\n", {}, "split must be train, val or test"),
    ("head,relation,tail\na,r,b\n", {"scale": "none"}, "prepare: scale is not for triples"),
    ("head,relation,tail\na,r,b\n", {"predict": "number"}, "prepare: predict is not for triples"),
]


@pytest.mark.parametrize(("text", "options", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_tables_are_one_line(text: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "triples.csv").write_text(text)
    with pytest.raises(LTGAError, match=message) as caught:
        load_dataset(tmp_path, preparation=Preparation(**options) if options else None)
    assert "\n" not in str(caught.value)


def test_a_direction_is_not_for_triples(tmp_path: Path) -> None:
    with pytest.raises(LTGAError, match="convention: a triple says its direction itself"):
        load_dataset(family(tmp_path / "family"), convention="directed")
