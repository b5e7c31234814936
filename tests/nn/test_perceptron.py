"""The perceptron on a bag of words takes the sparse product: torch's own layers are the reference."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ltga.nn.baselines.perceptron import Perceptron


def bag_of_words(dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.rand(600, 800, generator=generator) < 0.01).to(dtype)


@pytest.mark.parametrize("training", [True, False])
def test_a_bag_of_words_gives_what_torch_gives(training: bool) -> None:
    x = bag_of_words(torch.float64)
    model = Perceptron(800, 3, hidden_channels=4, heads=2).double().train(training)
    first, second = model.linears

    def written_out() -> Tensor:
        hidden = F.elu(first(F.dropout(x, 0.4, training)))
        return second(F.dropout(hidden, 0.4, training))

    for step in range(3):  # a tensor is seen to be sparse when it comes again
        found = []
        for forward in (lambda: model(x), written_out):
            torch.manual_seed(step)
            out = forward()
            grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
            found.append((out, *grads, torch.rand(1)))  # the generator is left in the same state
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_features_changed_in_place_are_looked_at_again() -> None:
    x = bag_of_words(torch.float32)
    model = Perceptron(800, 3).eval()
    for _ in range(3):
        model(x)
    x.mul_(2)
    first, second = model.linears
    torch.testing.assert_close(model(x), second(F.elu(first(x))))
