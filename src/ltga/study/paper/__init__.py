"""The paper's own statistics, recomputed from its printed cells: what follows and what does not."""

from functools import cache

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


@cache
def checks() -> tuple[Check, ...]:
    """Every printed figure that was recomputed."""
    return (
        *check_averages(),
        *check_ranks(),
        *check_pairwise(),
        *check_seeds(),
        *check_headline_text(),
        *check_baseline_text(),
        *check_sweep_text(),
        *check_pruning_text(),
    )


def discrepancies() -> tuple[Check, ...]:
    """Those that the printed tables do not give: by ``verdict`` open to rounding, or in contradiction."""
    return tuple(check for check in checks() if check.verdict != "follows")


__all__ = ["HEADLINE", "PRINTED_MEANS", "Check", "checks", "discrepancies", "headline_with_printed_ranks"]
