"""From one real graph to another with the same features: Twitch in German, then in English."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ltga
from ltga.data import NodeDataset

FOLDER = Path(os.environ.get("LTGA_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")
SETTINGS = {"epochs": 15, "hidden_channels": 8, "heads": 4}


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "raw" / "twitch").exists(), reason=f"no twitch in {FOLDER}; set LTGA_DATA")
def test_what_is_learned_in_german_holds_in_english() -> None:
    here, there = ltga.load_dataset("twitch-de", FOLDER), ltga.load_dataset("twitch-engb", FOLDER)
    run = ltga.fit(here, "ltga-head", protocol=SETTINGS)
    assert run.predict(there).shape == (there.data.num_nodes,)
    days = ltga.load_dataset("twitch-de:target=days", FOLDER)
    assert isinstance(days, NodeDataset)
    learned = ltga.fit(days, "features", protocol=SETTINGS)
    unseen = ltga.load_dataset("twitch-engb:target=days", FOLDER)
    error = (learned.predict(unseen) - unseen.data.y).abs().mean()
    guess = (unseen.data.y - days.data.y.mean()).abs().mean()
    assert error < guess
