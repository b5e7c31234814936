"""What a stored row of edges may mean."""

from __future__ import annotations

from typing import Literal, get_args

Convention = Literal["both directions", "directed", "undirected, once"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)
