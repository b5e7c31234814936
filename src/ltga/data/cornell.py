"""Recognising, by content, the mirrored Cornell that carries the words and labels of Texas."""

from __future__ import annotations

import hashlib

import numpy as np

from ltga.errors import DataError

_TEXAS_WORDS = "5799e8e0ea89da261840136958ec779cc329a391d958279c4bbc7b663703218f"
_MIRRORED_LINKS = "42fcd59adc1414aac24fbcac96df808a312ac9bb877dd341592ce07b11eb3573"
_CORRECTED_LINKS = "64a5b17b1ddd40cd9fa4f9123859e9d14a2b9b98e138eeb3602d8ab31a472460"


def refuse_texas_under_cornells_links(x: np.ndarray, edges: np.ndarray, where: str, called_cornell: bool) -> None:
    """Raise if features `[N, F]` are those of Texas while name or edges `[E, 2]` are those of Cornell."""
    if x.shape != (183, 1703) or words_fingerprint(x) != _TEXAS_WORDS:
        return
    if called_cornell or links_fingerprint(edges) in (_MIRRORED_LINKS, _CORRECTED_LINKS):
        raise DataError(
            f"{where}: this Cornell carries the words of Texas. The file in the widely mirrored "
            "graphdml-uiuc-jlu/geom-gcn is such a mixture (homophily .30); use the corrected Cornell of "
            "bingzhewei/geom-gcn (homophily .13), which ltga.load_dataset('cornell') downloads"
        )


def words_fingerprint(x: np.ndarray) -> str:
    """A hash of which words occur on which page `[N, F]`, whatever the order or scale of the rows."""
    rows = np.packbits(x != 0, axis=1)
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in rows))).hexdigest()


def links_fingerprint(edges: np.ndarray) -> str:
    """A hash of the links `[E, 2]`, whatever their order or direction; self-loops do not count."""
    links = {(min(a, b), max(a, b)) for a, b in edges.tolist() if a != b}
    return hashlib.sha256(repr(sorted(links)).encode()).hexdigest()
