"""Predict a number for molecules given as SMILES; needs `pip install 'ltga[molecules]'`."""

import torch
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

import ltga
from ltga.data import collection_from_data, molecule

# Alcohols, ethers, amines and acids of growing length, and rdkit's estimate of how they prefer oil to water.
ends = ["O", "N", "OC", "C(=O)O", "C#N", "Cl", "c1ccccc1", "C(C)(C)O"]
texts = ["C" * length + end for length in range(1, 11) for end in ends]
graphs = []
for text in texts:
    graph = molecule(text)  # atoms with 39 features, bonds with 10
    graph.y = torch.tensor([MolLogP(Chem.MolFromSmiles(text))])
    graphs.append(graph)
collection = collection_from_data(graphs, "log P")
print(collection)

run = ltga.fit(collection, "ltga-head", protocol={"epochs": 40, "lr": 0.01}, options={"batch_size": 16})
print(f"root mean squared error {run.metrics['rmse']:.2f}, R2 {run.metrics['r2']:.2f}")
r2 = run.metrics["r2"]

for text in ("CCCCCCO", "CCCCCCCCCl"):
    print(text, f"{run.predict(molecule(text)).item():.2f}, by rdkit {MolLogP(Chem.MolFromSmiles(text)):.2f}")
