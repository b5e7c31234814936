"""The catalogue of methods: what each name stands for, where it comes from and how it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ltga.errors import InputError, did_you_mean

PAPER = "da Costa and Modenesi, 2026"
SOFTMAX: Mapping[str, Any] = {"index": 1.0, "normalizer": "softmax"}


@dataclass(frozen=True)
class Method:
    """One row of a results table.

    Attributes:
        name: what to type.
        label: what tables print.
        family: convolution, softmax, learned q, frozen q, entmax, learned α, control, dot product, heterophily,
            backbone, no structure.
        about: what it is, in one line.
        source: the paper it comes from.
        network: which network builds it: ``"ltga"`` or the name of a baseline.
        settings: what is special about it, as arguments of that network.
        paired: the same method as settings of ``LTGA``, for a comparison with shared weights and dropout;
            ``None`` if there is no such form.
    """

    name: str
    label: str
    family: str
    about: str
    source: str
    network: str = "ltga"
    settings: Mapping[str, Any] = field(default_factory=dict)
    paired: Mapping[str, Any] | None = None

    @property
    def learns_index(self) -> bool:
        """Whether q or alpha is learned.

        >>> find_method("ltga-head").learns_index, find_method("sparsemax").learns_index
        (True, False)
        """
        return isinstance(self.settings.get("index"), str)


def _learned(index: str, about: str) -> Method:
    name, label = f"ltga-{index}", f"LTGA-{index.title()}"
    return Method(name, label, "learned q", about, PAPER, settings={"index": index})


def _frozen(q: float) -> Method:
    about = {1.0: "q-softmax held at q = 1: softmax"}.get(q, f"q-softmax held at q = {q:g}")
    name, label = f"frozen-q{q:.1f}", f"q = {q:.1f} (frozen)"
    return Method(name, label, "frozen q", about, PAPER, settings={"index": q})


def _entmax(name: str, label: str, alpha: float, about: str, source: str) -> Method:
    return Method(name, label, "entmax", about, source, settings={"index": alpha, "normalizer": "entmax"})


def _learned_alpha(index: str, about: str) -> Method:
    settings = {"index": index, "normalizer": "entmax"}
    label = f"α-entmax, α per {index}"
    return Method(f"entmax-{index}", label, "learned α", about, "Correia et al., EMNLP 2019", settings=settings)


def _control(modifier: str, label: str, about: str) -> Method:
    settings = {**SOFTMAX, "modifier": modifier}
    return Method(f"gatv2-{modifier}", label, "control", about, PAPER, settings=settings)


SLOTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "softmax": ("softmax", SOFTMAX),
    "q": ("learned q", {"index": "head"}),
    "alpha": ("learned α", {"index": "head", "normalizer": "entmax"}),
    "sparsemax": ("sparsemax", {"index": 2.0, "normalizer": "entmax"}),
    "temperature": ("softmax with a learned temperature", {**SOFTMAX, "modifier": "temperature"}),
}
"""What a backbone's attention may be normalised by: all that differs between its methods."""


def _on_backbone(network: str, label: str, about: str, source: str, slot: str) -> Method:
    words, settings = SLOTS[slot]
    name = f"{network}-{slot}"
    return Method(name, f"{label} + {words}", "backbone", f"{about}; {words}", source, network, settings)


def _heterophily(name: str, label: str, about: str, source: str) -> Method:
    return Method(name, label, "heterophily", about, source, network=name)


_ALL = (
    Method(
        "gcn", "GCN", "convolution", "graph convolution, no attention", "Kipf and Welling, ICLR 2017", "gcn"
    ),
    Method(
        "gat", "GAT", "softmax", "additive attention with softmax", "Velickovic et al., ICLR 2018", "gat",
        paired={**SOFTMAX, "scoring": "gat", "share_weights": True},
    ),
    Method(
        "gatv2", "GATv2", "softmax", "dynamic attention with softmax", "Brody et al., ICLR 2022", "gatv2",
        paired=SOFTMAX,
    ),
    _learned("global", "one learned q for the whole network"),
    _learned("layer", "one learned q per layer"),
    _learned("head", "one learned q per head and layer"),
    _learned("edge", "a learned q per edge and head, from a small gate on the endpoints"),
    *(_frozen(q) for q in (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)),
    _entmax("entmax-1.2", "α-entmax, α = 1.2", 1.2, "entmax at alpha = 1.2", "Correia et al., EMNLP 2019"),
    _entmax("entmax-1.5", "α-entmax, α = 1.5", 1.5, "entmax at alpha = 1.5", "Peters et al., ACL 2019"),
    _entmax("sparsemax", "sparsemax", 2.0, "entmax at alpha = 2", "Martins and Astudillo, ICML 2016"),
    _learned_alpha("head", "entmax with one learned alpha per head and layer"),
    _learned_alpha("edge", "entmax with a learned alpha per edge and head, from a small gate on the endpoints"),
    _control("edge-bias", "GATv2 + edge bias", "softmax; the edge gate is added to the logits"),
    _control("edge-scale", "GATv2 + edge scale", "softmax; the edge gate scales the logits"),
    _control("temperature", "GATv2 + temperature", "softmax with a learned temperature per head"),
    Method(
        "dot-softmax", "Dot + softmax", "dot product", "scaled dot-product attention with softmax",
        "Vaswani et al., NeurIPS 2017", settings={**SOFTMAX, "scoring": "qkv"},
    ),
    Method(
        "dot-ltga-head", "Dot + LTGA-Head", "dot product",
        "scaled dot-product attention with one learned q per head", PAPER,
        settings={"index": "head", "scoring": "qkv"},
    ),
    _heterophily("h2gcn", "H2GCN", "ego and neighbours kept apart, two hops", "Zhu et al., NeurIPS 2020"),
    _heterophily("gprgnn", "GPR-GNN", "an MLP and learned PageRank weights", "Chien et al., ICLR 2021"),
    _heterophily("fagcn", "FAGCN", "signed, frequency-adaptive propagation", "Bo et al., AAAI 2021"),
    _heterophily("linkx", "LINKX", "MLPs on adjacency and features", "Lim et al., NeurIPS 2021"),
    *(_on_backbone("classic", "Classic", "deep residual stack", "Luo et al., NeurIPS 2024", slot) for slot in SLOTS),
    *(_on_backbone("separated", "GAT-sep", "pre-norm stack, ego features apart", "Platonov et al., ICLR 2023", slot)
      for slot in SLOTS),
    Method("gin", "GIN", "convolution", "sums over neighbours, no attention", "Xu et al., ICLR 2019", "gin"),
    Method(
        "features", "Features only", "no structure", "a perceptron on features; no edge is looked at",
        "the baseline of Errica et al., ICLR 2020", "perceptron",
    ),
)  # fmt: skip

METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}


def find_method(name: str) -> Method:
    """The catalogue entry called ``name``.

    >>> find_method("LTGA_Head").about
    'one learned q per head and layer'
    >>> find_method("ltga-heads")
    Traceback (most recent call last):
    ...
    ltga.errors.InputError: method: no method is called 'ltga-heads'; did you mean 'ltga-head'?
    """
    plain = str(name).strip().lower().replace("_", "-")
    if plain in METHODS:
        return METHODS[plain]
    hint = did_you_mean(plain, METHODS, f"known are {', '.join(METHODS)}")
    raise InputError(f"method: no method is called {name!r}; {hint}")
