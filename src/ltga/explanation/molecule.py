"""Graphs drawn in the plane: as molecules where they are some and rdkit is there, else by springs or on a circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor

from ltga.data.molecules import ATOM_FEATURES, BOND_FEATURES

# What the label readmes of the TU collection say, in the order of the columns of x.
_TU_ELEMENTS = {
    "mutag": "C N O F I Cl Br",
    "mutagenicity": "C O Cl H N F Br S P I Na K Li Ca",
    "aids": "C O N Cl F S Se P Na I Co Br Li Si Mg Cu As B Pt Ru K Pd Au Te W Rh Zn Bi Pb Ge Sb Sn Ga Hg Ho Tl Ni Tb",
}
_ELEMENTS = tuple(name.removeprefix("element ") for name in ATOM_FEATURES if name.startswith("element "))
_ORDERS = ("single", "double", "triple", "aromatic")  # as the first columns of BOND_FEATURES
_TU_ORDERS = {"mutag": ("aromatic", "single", "double", "triple")}
_MOST_SPRINGS = 300  # nodes; beyond, springs take seconds
_MOST_NEIGHBOURS = 8  # no atom has more


def symbols_of(name: str, x: Tensor) -> np.ndarray | None:
    """The element ``[N]`` of every node, where features are those of molecules; ``None`` where they are not.

    >>> import torch
    >>> symbols_of("mutag", torch.eye(7)[[0, 2]]).tolist()
    ['C', 'O']
    """
    known = _TU_ELEMENTS.get(name, "").split()
    if x.shape[1] == len(ATOM_FEATURES) and bool((x[:, : len(_ELEMENTS)].sum(1) == 1).all()):
        symbols = ["*" if name == "other" else name for name in _ELEMENTS]
        return np.array(symbols, dtype=object)[x[:, : len(_ELEMENTS)].argmax(1).numpy()]
    if known and x.shape[1] == len(known):
        return np.array(known, dtype=object)[x.argmax(1).numpy()]
    return None


def orders_of(name: str, edge_attr: Tensor | None) -> np.ndarray | None:
    """How many bonds each edge ``[E]`` of molecules stands for; 4 means aromatic, 0 that it is not known."""
    if edge_attr is None:
        return None
    names = _TU_ORDERS.get(name, _ORDERS[:3])
    if edge_attr.shape[1] == len(BOND_FEATURES):
        names = _ORDERS
    elif name not in _TU_ELEMENTS or edge_attr.shape[1] != len(names):
        return None
    kinds = edge_attr[:, : len(names)]
    numbers = np.array([_ORDERS.index(kind) + 1 for kind in names])[kinds.argmax(1).numpy()]
    return np.where(kinds.sum(1).numpy() == 1, numbers, 0)


def places(nodes: int, ends: np.ndarray, symbols: Sequence[str] | None, orders: np.ndarray | None) -> np.ndarray:
    """Where to draw each node ``[nodes, 2]``, y down; edges ``ends`` ``[2, E]`` have one direction or both."""
    if symbols is not None:
        drawn = _as_molecule(nodes, ends, symbols, orders)
        if drawn is not None:
            return drawn
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(ends.T.tolist())
    if nodes > _MOST_SPRINGS:
        found = nx.circular_layout(graph)
    else:
        found = nx.spring_layout(graph, seed=0, iterations=50, k=1.2 / max(nodes, 1) ** 0.5)
    return np.array([found[node] for node in range(nodes)], dtype=np.float64).reshape(nodes, 2)


def has_rdkit() -> bool:
    """Whether molecules can be drawn as chemists draw them."""
    try:
        import rdkit  # noqa: F401
    except ImportError:
        return False
    return True


def _as_molecule(nodes: int, ends: np.ndarray, symbols: Sequence[str], orders: np.ndarray | None) -> np.ndarray | None:
    """rdkit's coordinates; ``None`` without rdkit, or where it does not take the graph for a molecule."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdDepictor import Compute2DCoords
    except ImportError:
        return None
    bonds = {tuple(sorted(pair)): at for at, pair in enumerate(ends.T.tolist()) if pair[0] != pair[1]}
    degree = np.bincount(np.array(list(bonds), dtype=int).reshape(-1), minlength=max(nodes, 1))
    if degree.max(initial=0) > _MOST_NEIGHBOURS:
        return None
    kinds = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE, Chem.BondType.AROMATIC)
    made: Any = Chem.RWMol()
    with rdBase.BlockLogs():
        for symbol in symbols:
            made.AddAtom(Chem.Atom(symbol))
        for (a, b), at in bonds.items():
            order = 1 if orders is None else max(int(orders[at]), 1)
            made.AddBond(int(a), int(b), kinds[order - 1])
        try:
            made.UpdatePropertyCache(strict=False)
            Chem.FastFindRings(made)
            Compute2DCoords(made)
        except (ValueError, RuntimeError):
            return None
    at = made.GetConformer().GetPositions()[:, :2]
    return np.asarray(at * np.array([1, -1]))
