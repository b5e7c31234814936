"""The protocol refuses what it does not know, and says what it would have taken."""

from __future__ import annotations

import pytest

from ltga.errors import LTGAError
from ltga.train import Protocol


def test_the_defaults_are_the_headline_protocol() -> None:
    assert Protocol() == Protocol.paper()
    assert Protocol().settings() == {
        "lr": 1e-2, "weight_decay": 5e-4, "kappa": 1.0, "warmup": 20, "prior": 0.0, "delta": 1.0, "dropout": 0.4,
        "epochs": 200, "patience": 20, "hidden_channels": 64, "heads": 8, "num_layers": 2, "residual": False,
        "init": "paper", "backend": "auto",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 1}, "learning_rate: the protocol has no such setting"),
        ({"warm_up": 3}, "did you mean 'warmup'"),
        ({"lr": -1}, "lr: input should be greater than 0, got -1"),
        ({"lr": float("nan")}, "lr: input should be"),
        ({"dropout": 1.0}, "dropout: "),
        ({"init": "random"}, "init: input should be 'paper' or 'paired', got 'random'"),
        ({"epochs": "many"}, "epochs: "),
        ({"num_layers": 0}, "num_layers: "),
    ],
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(LTGAError) as error:
        Protocol(**settings)
    assert message in str(error.value)
    with pytest.raises(LTGAError):
        Protocol().with_overrides(**settings)


def test_it_is_a_value() -> None:
    assert Protocol(lr=1) == Protocol(lr=1.0)
    assert hash(Protocol()) == hash(Protocol())
    with pytest.raises(Exception, match="frozen"):
        Protocol().lr = 1.0  # type: ignore[misc]
