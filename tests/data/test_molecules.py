"""Molecules against rdkit's own counts and PyG's reader of SMILES."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ltga.data import CATALOGUE, load_dataset, molecule
from ltga.data.molecules import ATOM_FEATURES, BOND_FEATURES, read_molecules
from ltga.errors import InputError

Chem = pytest.importorskip("rdkit.Chem")

SMILES = [
    "C",
    "CCO",
    "c1ccccc1",
    "OC(=O)c1ccccc1O",
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "F/C=C\\F",
    "[NH4+].[Cl-]",
    "C#N",
    "[Na+]",
    "FC(F)(F)S(=O)(=O)O",
    "[CH3]",
    "FS(F)(F)(F)(F)F",
]


def column(features: tuple[str, ...], name: str) -> int:
    return features.index(name)


@pytest.mark.parametrize("smiles", SMILES)
def test_counts_and_bonds(smiles: str) -> None:
    from torch_geometric.utils import from_smiles

    ours, theirs, parsed = molecule(smiles), from_smiles(smiles), Chem.MolFromSmiles(smiles)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert ours.x.shape == (parsed.GetNumAtoms(), 39)
    assert ours.edge_attr.shape == (2 * parsed.GetNumBonds(), 10)
    symbols = [ATOM_FEATURES[int(row[:16].argmax())].removeprefix("element ") for row in ours.x]
    known = [f"element {atom.GetSymbol()}" in ATOM_FEATURES for atom in parsed.GetAtoms()]
    assert symbols == [atom.GetSymbol() if one else "other" for atom, one in zip(parsed.GetAtoms(), known)]
    # PyG's table: atomic number, chirality, degree with hydrogens, charge, hydrogens, radicals, hybrid, aromatic, ring.
    assert ours.x[:, 16:22].argmax(dim=1).tolist() == (theirs.x[:, 2] - theirs.x[:, 4]).clamp(max=5).tolist()
    assert ours.x[:, 22].tolist() == (theirs.x[:, 3] - 5).tolist()
    assert ours.x[:, column(ATOM_FEATURES, "radical electrons")].tolist() == theirs.x[:, 5].tolist()
    assert ours.x[:, column(ATOM_FEATURES, "aromatic")].tolist() == theirs.x[:, 7].tolist()
    hydrogens = column(ATOM_FEATURES, "0 hydrogens")
    assert ours.x[:, hydrogens : hydrogens + 5].argmax(dim=1).tolist() == theirs.x[:, 4].clamp(max=4).tolist()
    for start, end in ((0, 16), (16, 22), (24, 30), (hydrogens, hydrogens + 5)):
        assert (ours.x[:, start:end].sum(dim=1) == 1).all()
    assert ours.edge_attr[:, 4].tolist() == theirs.edge_attr[:, 2].float().tolist()
    assert (ours.edge_attr[:, :4].sum(dim=1) == 1).all()


def test_forms_in_space() -> None:
    right, left = molecule("C[C@H](N)C(=O)O"), molecule("C[C@@H](N)C(=O)O")
    centre, r, s = (column(ATOM_FEATURES, name) for name in ("chiral centre", "chirality R", "chirality S"))
    assert [right.x[1, at].item() for at in (centre, r, s)] in ([1, 1, 0], [1, 0, 1])
    assert right.x[1, r] == left.x[1, s] and right.x[1, s] == left.x[1, r]
    assert molecule("CC(N)C(=O)O").x[1, centre:].tolist()[1:] == [0, 0]
    z, e = column(BOND_FEATURES, "stereo z"), column(BOND_FEATURES, "stereo e")
    for smiles, at in (("F/C=C/F", e), ("F/C=C\\F", z)):
        double = molecule(smiles).edge_attr[molecule(smiles).edge_attr[:, 1] == 1]
        assert double[:, at].tolist() == [1, 1]
    ring = column(BOND_FEATURES, "in a ring")
    assert molecule("C1CC1C").edge_attr[:, ring].sum() == 6


def test_what_does_not_parse_is_named() -> None:
    read = read_molecules(["CCO", "C1CC", "", "C(C)(C)(C)(C)C", "not a molecule", "c1cccc1", "N"])
    assert read.positions == [0, 6]
    assert [position for position, _ in read.unparsable] == [1, 2, 3, 4, 5]
    assert "valence" in dict(read.unparsable)[3]
    assert "kekulize" in dict(read.unparsable)[5]
    assert all(reason and "\n" not in reason for _, reason in read.unparsable)
    with pytest.raises(InputError, match="smiles: 'C1CC' is not a molecule"):
        molecule("C1CC")


def test_without_rdkit_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("rdkit"):
            raise ImportError(name)
        return plain(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"need rdkit; install it with pip install 'ltga\[molecules\]'"):
        molecule("CCO")


@pytest.mark.data
def test_esol(data_root: Path) -> None:
    table = pd.read_csv(data_root / CATALOGUE["esol"].raw[0].path)
    collection = load_dataset("esol", root=data_root)
    assert len(collection) == len(table) == 1128
    assert collection.left_out == ()
    assert np.allclose(collection.y.numpy(), table["measured log solubility in mols per litre"])
    assert collection.graph_names == tuple(table["Compound ID"])
    assert [graph.num_nodes for graph in collection] == [Chem.MolFromSmiles(s).GetNumAtoms() for s in table["smiles"]]
    assert sum(graph.num_nodes for graph in collection) == CATALOGUE["esol"].nodes
    assert sum(graph.num_edges for graph in collection) == CATALOGUE["esol"].edges
    assert (collection.task, collection.metric, collection.edge_dim) == ("graph regression", "rmse", 10)
    canonical = np.array([Chem.CanonSmiles(s) for s in table["smiles"]])
    for split in range(10):
        train, val, test = (set(canonical[mask.numpy()]) for mask in collection.split(split))
        assert not train & test and not train & val and not val & test


@pytest.mark.data
@pytest.mark.slow
def test_tox21(data_root: Path) -> None:
    table = pd.read_csv(data_root / CATALOGUE["tox21"].raw[0].path)
    collection = load_dataset("tox21", root=data_root)
    assert (len(collection), len(collection.left_out)) == (8006, 8)
    assert collection.left_out[0].startswith("TOX31563: ")
    kept = table[table["mol_id"].isin(collection.graph_names)]
    expected = kept[list(collection.target.names)].to_numpy(np.float32)
    assert np.array_equal(collection.y.numpy(), expected, equal_nan=True)
    assert len(collection.target.names) == 12
    assert sum(graph.num_nodes for graph in collection) == CATALOGUE["tox21"].nodes
    assert sum(graph.num_edges for graph in collection) == CATALOGUE["tox21"].edges
    assert (collection.task, collection.metric) == ("multi-label graphs", "roc_auc")
    assert collection[0].y.shape == (1, 12)
