"""Tests one can trust: paired comparisons, ranks, intervals, and what the paper's own numbers amount to."""

from ltga.study.stats.family import PRIMARY, Family, compare, compare_across_datasets, compare_by_init
from ltga.study.stats.intervals import (
    Interval,
    mean_difference,
    mean_probability_of_improvement,
    probability_of_improvement,
)
from ltga.study.stats.paired import (
    PairedTest,
    WinsLossesTies,
    cohens_d,
    holm,
    paired_test,
    reach_warning,
    resampled_p,
    smallest_possible_holm,
    smallest_possible_p,
    wins_losses_ties,
)
from ltga.study.stats.ranks import (
    CriticalDifference,
    Friedman,
    average_ranks,
    critical_difference,
    critical_difference_diagram,
    friedman,
)
from ltga.study.stats.scores import Pairs, Scores, scores_from_records

__all__ = [
    "PRIMARY",
    "CriticalDifference",
    "Family",
    "Friedman",
    "Interval",
    "PairedTest",
    "Pairs",
    "Scores",
    "WinsLossesTies",
    "average_ranks",
    "cohens_d",
    "compare",
    "compare_across_datasets",
    "compare_by_init",
    "critical_difference",
    "critical_difference_diagram",
    "friedman",
    "holm",
    "mean_difference",
    "mean_probability_of_improvement",
    "paired_test",
    "probability_of_improvement",
    "reach_warning",
    "resampled_p",
    "scores_from_records",
    "smallest_possible_holm",
    "smallest_possible_p",
    "wins_losses_ties",
]
