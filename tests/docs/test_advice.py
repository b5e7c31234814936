"""The sentence that ``ltga train`` prints about a graph counts what the records say."""

from __future__ import annotations

import json
from pathlib import Path

from ltga.cli.advice import FASTER, LEAST_TEACHING, LIKE_THIS, MORE_ACCURATE, MOST_AGREEMENT, advice
from ltga.data import csbm
from ltga.study.archive import stored_records
from ltga.study.experiments import EXPERIMENTS
from ltga.study.lookup import find_records
from ltga.study.when import gains

RESULTS = Path(__file__).parents[2] / "results"


def test_its_numbers_are_those_of_the_records() -> None:
    known = json.loads((RESULTS / "when-graphs.json").read_text())
    alike = [
        name for name, told in known.items() if told["labels"] >= LEAST_TEACHING and told["agreement"] <= MOST_AGREEMENT
    ]
    records = find_records(EXPERIMENTS["when"].runs, stored_records(RESULTS / "own.jsonl.gz"))
    found = gains(records.values())
    learned = [found[name]["entmax-head"] for name in alike]
    faster, better = sum(gain.speed > 1 for gain in learned), sum(gain.points > 0 for gain in learned)
    assert (len(learned), faster, better) == (LIKE_THIS, FASTER, MORE_ACCURATE)
    assert faster >= 0.9 * len(learned)  # decided before looking: nothing is said otherwise


def test_who_is_told() -> None:
    (said,) = advice(csbm(num_nodes=300, degree=20, homophily=0.3))
    assert "learned faster than softmax" in said and "Median degree" in said
    assert advice(csbm(num_nodes=300, degree=20, homophily=0.8)) == []
