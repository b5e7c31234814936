"""A figure that a notebook shows by itself."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A matplotlib figure with its own picture: notebooks draw others only after ``pyplot`` was imported there."""

    def _repr_png_(self) -> bytes:
        """What IPython shows for the last value of a cell."""
        content = io.BytesIO()
        self.savefig(content, format="png", bbox_inches="tight")
        return content.getvalue()
