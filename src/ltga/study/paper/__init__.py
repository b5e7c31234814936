"""The paper's own statistics, recomputed from its printed cells: what follows and what does not."""

from ltga.study.paper.check import PRINTED_MEANS, Check
from ltga.study.paper.own_tests import (
    check_averages,
    check_pairwise,
    check_ranks,
    check_seeds,
    headline_with_printed_ranks,
)
from ltga.study.paper.printed import HEADLINE
from ltga.study.paper.text import check_baseline_text, check_headline_text, check_pruning_text, check_sweep_text

CHECKS: tuple[Check, ...] = (
    *check_averages(),
    *check_ranks(),
    *check_pairwise(),
    *check_seeds(),
    *check_headline_text(),
    *check_baseline_text(),
    *check_sweep_text(),
    *check_pruning_text(),
)
"""Every printed figure that was recomputed."""

DISCREPANCIES: tuple[Check, ...] = tuple(check for check in CHECKS if check.verdict != "follows")
"""Those that the printed tables do not give: by ``verdict`` open to rounding, or in contradiction."""

__all__ = ["CHECKS", "DISCREPANCIES", "HEADLINE", "PRINTED_MEANS", "Check", "headline_with_printed_ranks"]
