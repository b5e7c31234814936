"""Molecules from SMILES: a node per heavy atom, two directed edges per bond, and what chemists say of each.

The features are those of Xiong et al. (J. Med. Chem. 2020, table 1): 39 of an atom, 10 of a bond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from ltga.errors import InputError

_ELEMENTS = ("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "As", "Se", "Br", "Te", "I", "At")
_HYBRIDS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = ("STEREONONE", "STEREOANY", "STEREOZ", "STEREOE")

ATOM_FEATURES: tuple[str, ...] = (
    *(f"element {symbol}" for symbol in (*_ELEMENTS, "other")),
    *(f"{count} neighbours" for count in (*range(5), "5 or more")),
    "charge",
    "radical electrons",
    *(f"hybrid {name}" for name in (*_HYBRIDS, "other")),
    "aromatic",
    *(f"{count} hydrogens" for count in (*range(4), "4 or more")),
    "chiral centre",
    "chirality R",
    "chirality S",
)
BOND_FEATURES: tuple[str, ...] = (
    *(f"bond {name.lower()}" for name in _BONDS),
    "conjugated",
    "in a ring",
    *(f"stereo {name.removeprefix('STEREO').lower()}" for name in _STEREO),
)


@dataclass(frozen=True)
class Molecules:
    """Graphs of those SMILES that parse, their positions in the list, and the ones that do not with the reason.

    `canonical` spells a molecule in one way however it was spelled.
    """

    graphs: list[Data]
    positions: list[int]
    canonical: list[str]
    unparsable: list[tuple[int, str]]


def read_molecules(smiles: Sequence[str]) -> Molecules:
    """A graph for every SMILES that rdkit can read; the rest are listed with what rdkit says of them."""
    chemistry = _rdkit()
    graphs: list[Data] = []
    positions: list[int] = []
    canonical: list[str] = []
    unparsable: list[tuple[int, str]] = []
    for position, text in enumerate(smiles):
        molecule = _parse(text, chemistry)
        if isinstance(molecule, str):
            unparsable.append((position, molecule))
        else:
            graphs.append(_graph(molecule))
            positions.append(position)
            canonical.append(chemistry.MolToSmiles(molecule))
    return Molecules(graphs, positions, canonical, unparsable)


def molecule(smiles: str) -> Data:
    """The graph of one molecule: `x` `[atoms, 39]`, `edge_attr` `[2 * bonds, 10]`; hydrogens are features of atoms.

    `ATOM_FEATURES` and `BOND_FEATURES` name the columns.
    """
    parsed = _parse(smiles, _rdkit())
    if isinstance(parsed, str):
        raise InputError(f"smiles: {smiles[:60]!r} is not a molecule ({parsed}); check its spelling")
    return _graph(parsed)


def _rdkit() -> Any:
    try:
        from rdkit import Chem
    except ImportError:
        raise InputError("molecules: need rdkit; install it with pip install 'ltga[molecules]'") from None
    return Chem


def _parse(smiles: str, chemistry: Any) -> Any:
    """rdkit's molecule, or why there is none."""
    from rdkit import rdBase

    if not isinstance(smiles, str) or not smiles.strip():
        return "empty"
    with rdBase.BlockLogs():  # it would print on stderr, which is not ours
        parsed = chemistry.MolFromSmiles(smiles.strip(), sanitize=False)
        if parsed is None:
            return "not a SMILES"
        try:
            chemistry.SanitizeMol(parsed)
        except ValueError as error:  # rdkit's exceptions are subclasses
            return str(error).strip().splitlines()[-1]
        if parsed.GetNumAtoms() == 0:
            return "no atoms"
        chemistry.AssignStereochemistry(parsed, cleanIt=True, force=True)
    return parsed


def _graph(parsed: Any) -> Data:
    x = torch.tensor([_atom(atom) for atom in parsed.GetAtoms()], dtype=torch.float32)
    ends: list[tuple[int, int]] = []
    values: list[list[float]] = []
    for bond in parsed.GetBonds():
        first, second, described = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _bond(bond)
        ends += [(first, second), (second, first)]
        values += [described, described]
    edge_index = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    edge_attr = torch.tensor(values, dtype=torch.float32).reshape(-1, len(BOND_FEATURES))
    order = (edge_index[0] * x.shape[0] + edge_index[1]).argsort()
    return Data(x=x, edge_index=edge_index[:, order], edge_attr=edge_attr[order])


def _atom(atom: Any) -> list[float]:
    chirality = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
    return [
        *_one_of(atom.GetSymbol(), _ELEMENTS),
        *_count(atom.GetDegree(), 5),
        float(atom.GetFormalCharge()),
        float(atom.GetNumRadicalElectrons()),
        *_one_of(str(atom.GetHybridization()), _HYBRIDS),
        float(atom.GetIsAromatic()),
        *_count(atom.GetTotalNumHs(), 4),
        float(atom.HasProp("_ChiralityPossible") or chirality != ""),
        float(chirality == "R"),
        float(chirality == "S"),
    ]


def _bond(bond: Any) -> list[float]:
    kind, stereo = str(bond.GetBondType()), str(bond.GetStereo())
    return [
        *(float(kind == name) for name in _BONDS),
        float(bond.GetIsConjugated()),
        float(bond.IsInRing()),
        *(float(stereo == name) for name in _STEREO),
    ]


def _one_of(value: str, known: Sequence[str]) -> list[float]:
    """One-hot with a last place for everything else."""
    return [*(float(value == name) for name in known), float(value not in known)]


def _count(value: int, most: int) -> list[float]:
    """One-hot of 0 to `most`, more counting as `most`."""
    return [float(min(value, most) == count) for count in range(most + 1)]
