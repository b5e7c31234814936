"""Whether index arrays describe what compiled code takes them for, so that it reads and writes inside its arrays."""

from __future__ import annotations

from ltga.kernels.numba.scalar import borrowing


@borrowing()
def check_structure(ptr, col, perm, sources):  # type: ignore[no-untyped-def]
    """0 if the arrays describe a valid CSR structure, else the number of the first rule broken."""
    edges = len(col)
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != edges or len(perm) != edges:
        return 1
    falling = 0
    for i in range(len(ptr) - 1):
        falling |= ptr[i + 1] < ptr[i]
    if falling:
        return 2
    outside = misplaced = 0
    for k in range(edges):
        outside |= (col[k] < 0) | (col[k] >= sources)
        misplaced |= (perm[k] < 0) | (perm[k] >= edges)
    return 3 if outside else (4 if misplaced else 0)


@borrowing()
def check_both(ptr, col, perm, tptr, tcol, tpos, sources):  # type: ignore[no-untyped-def]
    """The same for edges sorted by target and by source, whose rules count in tens."""
    broken = check_structure(ptr, col, perm, sources)
    if broken != 0:
        return broken
    broken = 10 * check_structure(tptr, tcol, tpos, len(ptr) - 1)
    return 50 if broken == 0 and (len(tptr) != sources + 1 or len(tcol) != len(col)) else broken
