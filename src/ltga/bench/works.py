"""The pieces of work that are timed: graphs, layer sizes and the layers that compete on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ltga.errors import InputError


@dataclass(frozen=True)
class Work:
    """One graph and layer size."""

    name: str
    what: str
    load: Callable[[str | None], tuple[Tensor, Tensor]]  # data folder -> (x, edge_index)
    channels: int
    heads: int
    repeats: int = 7


def _dataset(name: str) -> Callable[[str | None], tuple[Tensor, Tensor]]:
    def load(root: str | None) -> tuple[Tensor, Tensor]:
        from ltga.data import load_dataset

        data = load_dataset(name, root).data
        return data.x, data.edge_index

    return load


def random_graph(nodes: int, edges: int, features: int) -> tuple[Tensor, Tensor]:
    """Random features and uniformly random edges, the same every time."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, features, generator=generator)
    return x, torch.randint(0, nodes, (2, edges), generator=generator)


WORKS = {
    work.name: work
    for work in (
        Work("gum-syntax", "22.9k nodes, 94k edges with self-loops, 300 -> 8x64", _dataset("gum-syntax"), 64, 8),
        Work(
            "gum-noisy",
            "the same graph, features made distinct by noise (no repeated rows to exploit)",
            lambda root: _with_noise(*_dataset("gum-syntax")(root)), 64, 8,
        ),
        Work(
            "random-169k",
            "169k nodes, 1.34M random edges, 128 -> 8x32",
            lambda _: random_graph(169_000, 1_340_000, 128), 32, 8, 3,
        ),
        Work("cora", "2,708 x 1,433 bag of words (1.3 % dense), 1433 -> 8x64", _dataset("cora"), 64, 8, 15),
    )
}  # fmt: skip


def _with_noise(x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1e-3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0)), edge_index


def layers(in_channels: int, channels: int, heads: int, names: tuple[str, ...]) -> dict[str, nn.Module]:
    """The competing layers by name, PyG's first."""
    from torch_geometric.nn import GATv2Conv

    from ltga.nn import LTGAConv

    size = (in_channels, channels, heads)
    makers: dict[str, Callable[[], nn.Module]] = {
        "pyg-gatv2": lambda: GATv2Conv(*size),
        "ltga-head": lambda: LTGAConv(*size),
        "ltga-edge": lambda: LTGAConv(*size, index="edge"),
        "entmax-1.5": lambda: LTGAConv(*size, index=1.5, normalizer="entmax"),
        "ltga-head-torch": lambda: LTGAConv(*size, backend="torch"),
    }
    unknown = set(names) - set(makers)
    if unknown:
        raise InputError(f"layers: unknown {', '.join(sorted(unknown))}; choose from {', '.join(makers)}")
    torch.manual_seed(0)
    return {name: makers[name]() for name in names}


def step(layer: nn.Module, x: Tensor, edge_index: Tensor, upstream: Tensor | None) -> Tensor:
    """Forward and backward once; returns the output's gradient for reuse."""
    layer.zero_grad(set_to_none=True)
    out = layer(x, edge_index)
    upstream = torch.ones_like(out) if upstream is None else upstream
    out.backward(upstream)
    return upstream
