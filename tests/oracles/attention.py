"""Graph attention written out as plain Python loops in float64: slow, obvious, and independent of ltga."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def exp_q(x: float, q: float) -> float:
    """[1 + (q-1) x]_+^(1/(q-1))."""
    u = (q - 1) * x
    if u <= -1:
        return 0.0
    if abs(q - 1) < 1e-13:
        return math.exp(x)
    return math.exp(math.log1p(u) / (q - 1))


def q_softmax(z: list[float], q: list[float]) -> list[float]:
    top = max(z)
    y = [exp_q(value - top, index) for value, index in zip(z, q)]
    return [value / sum(y) for value in y]


def entmax(z: list[float], alpha: list[float]) -> list[float]:
    """Bisection for the shift that makes the row sum to one; alpha may differ from element to element."""
    top = max(z)
    low, high = -(max(len(z), 2) ** 8.0), 0.0  # wide enough for alpha >= 0.1
    for _ in range(200):
        middle = (low + high) / 2
        if sum(exp_q(value - top + middle, a) for value, a in zip(z, alpha)) > 1:
            high = middle
        else:
            low = middle
    p = [exp_q(value - top + high, a) for value, a in zip(z, alpha)]
    return [value / sum(p) for value in p]


def leaky(t: float, slope: float) -> float:
    return t if t > 0 else slope * t


def with_self_loops(edges: list[tuple[int, int]], nodes: int) -> list[tuple[int, int]]:
    """PyG's order: the edges that are no self-loops, then one self-loop per node."""
    return [(j, i) for j, i in edges if i != j] + [(n, n) for n in range(nodes)]


def mean_fill(edges: list[tuple[int, int]], values: np.ndarray, nodes: int) -> np.ndarray:
    """Features for ``with_self_loops``: a self-loop gets the mean over its node's incoming edges."""
    kept = [k for k, (j, i) in enumerate(edges) if i != j]
    loops = np.zeros((nodes, values.shape[1]))
    for n in range(nodes):
        incoming = [values[k] for k in kept if edges[k][1] == n]
        if incoming:
            loops[n] = np.mean(incoming, axis=0)
    return np.concatenate([values[kept], loops])


def gate(parameters: dict[str, np.ndarray], prefix: str, z_i: np.ndarray, z_j: np.ndarray) -> np.ndarray:
    """The two-layer perceptron on [z_i || z_j], endpoint embeddings [H, C] averaged over heads."""
    joined = np.concatenate([z_i.mean(0), z_j.mean(0)])
    hidden = parameters[f"{prefix}.hidden.weight"] @ joined + parameters[f"{prefix}.hidden.bias"]
    return parameters[f"{prefix}.out.weight"] @ np.maximum(hidden, 0) + parameters[f"{prefix}.out.bias"]


@dataclass
class Result:
    out: np.ndarray
    weights: np.ndarray
    logits: np.ndarray
    q: np.ndarray


def layer(
    parameters: dict[str, np.ndarray],
    x_source: np.ndarray,
    x_target: np.ndarray,
    edges: list[tuple[int, int]],
    *,
    heads: int,
    concat: bool = True,
    scoring: str = "gatv2",
    normalizer: str = "q_softmax",
    index: str | float = "head",
    modifier: str | None = None,
    delta: float = 1.0,
    slope: float = 0.2,
    edge_attr: np.ndarray | None = None,
    keep: np.ndarray | None = None,
) -> Result:
    """One attention layer over ``edges`` (source, target) from the layer's parameters by state-dict name."""

    def project(name: str, x: np.ndarray) -> np.ndarray:
        out = x @ parameters[f"{name}.weight"].T + parameters.get(f"{name}.bias", 0.0)
        return out.reshape(len(x), heads, -1)

    source, target = project("lin_l", x_source), project("lin_r", x_target)
    keys = project("lin_key", x_source) if scoring == "qkv" else source
    channels = source.shape[2]
    logits, q = np.zeros((len(edges), heads)), np.ones((len(edges), heads))
    for k, (j, i) in enumerate(edges):
        if index == "edge":
            q[k] = 1 + delta * np.tanh(gate(parameters, "index.gate", target[i], source[j]))
        elif isinstance(index, str):
            q[k] = 1 + delta * np.tanh(parameters["index.raw"])
        else:
            q[k] = index
        key = keys[j]
        if edge_attr is not None:
            key = key + (parameters["lin_edge.weight"] @ edge_attr[k]).reshape(heads, channels)
        for h in range(heads):
            z = 0.0
            for c in range(channels):
                if scoring == "gatv2":
                    z += parameters["att"][0, h, c] * leaky(key[h, c] + target[i, h, c], slope)
                elif scoring == "gat":
                    z += parameters["att"][0, h, c] * key[h, c]
                    z += parameters["att_target"][0, h, c] * target[i, h, c]
                else:
                    z += key[h, c] * target[i, h, c] / math.sqrt(channels)
            logits[k, h] = leaky(z, slope) if scoring == "gat" else z
        if modifier == "edge-bias":
            logits[k] += gate(parameters, "modifier.gate", target[i], source[j])
        elif modifier == "edge-scale":
            logits[k] *= np.exp(gate(parameters, "modifier.gate", target[i], source[j]))
        elif modifier == "temperature":
            logits[k] *= np.exp(parameters["modifier.raw"])
    weights = np.zeros_like(logits)
    out = np.zeros((len(x_target), heads, channels))
    for i in range(len(x_target)):
        row = [k for k, edge in enumerate(edges) if edge[1] == i]
        for h in range(heads):
            if row:
                z = [logits[k, h] for k in row]
                indices = [q[k, h] if normalizer != "softmax" else 1.0 for k in row]
                weights[row, h] = (entmax if normalizer == "entmax" else q_softmax)(z, indices)
            for k in row:
                w = weights[k, h] * (1.0 if keep is None else keep[k, h])
                out[i, h] += w * source[edges[k][0], h]
    flat = out.reshape(len(x_target), -1) if concat else out.mean(1)
    flat = flat + parameters.get("bias", 0.0)
    if "res.weight" in parameters:
        flat = flat + x_target @ parameters["res.weight"].T
    return Result(flat, weights, logits, q)
