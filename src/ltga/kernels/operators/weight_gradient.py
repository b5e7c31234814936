"""The gradient of a linear's weight, by the quicker of two products where both round alike."""

from __future__ import annotations

import torch
from torch import Tensor

LANES = 16  # float32 numbers in a vector register: BLAS is slow where a result's rows end in between

_alike: dict[tuple[int, ...], bool] = {}  # what was found once for sizes like these


def weight_gradient(grad: Tensor, x: Tensor) -> Tensor:
    """``grad.t() @ x`` to the bit; of ``x.t() @ grad``, turned over, if that is quicker and found to be the same.

    Both are sums over nodes. Whether BLAS adds them up in the same order depends on the sizes, not on the numbers.

    >>> weight_gradient(torch.ones(3, 2), torch.ones(3, 1)).tolist()
    [[3.0], [3.0]]
    """
    (nodes, width), features = grad.shape, x.size(1)
    if features % LANES == 0 or width % LANES or features < LANES or width == LANES or x.dtype != torch.float32:
        return grad.t() @ x
    sizes = width, features, nodes.bit_length(), torch.get_num_threads()
    alike = _alike.get(sizes)
    if alike:
        return torch.mm(x.t(), grad).t().contiguous()
    found = grad.t() @ x
    if alike is None:
        _alike[sizes] = torch.equal(found, torch.mm(x.t(), grad).t())
    return found
