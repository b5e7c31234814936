"""The paper's averages, ranks and tests recomputed from its printed cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from ltga.study.paper.cells import DATASETS
from ltga.study.paper.check import (
    CELL_SLACK,
    CELLS,
    PAIR_SLACK,
    PRINTED_MEANS,
    Check,
    Verdict,
    claim,
    judge,
    printed_mean,
)
from ltga.study.paper.printed import (
    AVERAGES,
    FRIEDMAN_CHI2,
    FRIEDMAN_P,
    HEADLINE,
    PAIRWISE,
    RANKS,
    SEEDS,
)
from ltga.study.paper.rounding import (
    could_print_as,
    effect_range,
    prints_as,
    resolved_ties,
    t_test_range,
    wilcoxon_range,
)
from ltga.study.stats.family import compare_across_datasets
from ltga.study.stats.paired import Test, WinsLossesTies, holm, smallest_possible_holm, wins_losses_ties
from ltga.study.stats.ranks import average_ranks, critical_difference_diagram, friedman

ALPHA = 0.05


def headline_with_printed_ranks() -> list[pd.DataFrame]:
    """The ways to order cells that print alike which give all seven printed average ranks at once."""
    tables = resolved_ties(CELLS, HEADLINE, DATASETS)
    return [
        table for table in tables if all(prints_as(rank, RANKS[str(m)]) for m, rank in average_ranks(table).items())
    ]


def check_averages() -> Iterator[Check]:
    for method, printed in AVERAGES.items():
        value = float(PRINTED_MEANS[method].mean())
        yield judge(f"average accuracy of {method}", printed, value, (value - CELL_SLACK, value + CELL_SLACK))


def check_ranks() -> Iterator[Check]:
    """Average ranks and Friedman's test, which hang on how cells that print alike are ordered."""
    printed_table = PRINTED_MEANS[list(HEADLINE)]
    resolved = headline_with_printed_ranks()
    why = f"{len(resolved)} of the possible orders of cells that print alike gives every printed rank"
    ranks = average_ranks(printed_table)
    for method in HEADLINE:
        reached = [float(average_ranks(table)[method]) for table in resolved] or [ranks[method]]
        yield judge(f"average rank of {method}", RANKS[method], ranks[method], (min(reached), max(reached)), why)
    as_printed, tests = friedman(printed_table), [friedman(table) for table in resolved]
    for name, printed in (("chi2", FRIEDMAN_CHI2), ("p", FRIEDMAN_P)):
        value = float(getattr(as_printed, name))
        reached = [float(getattr(test, name)) for test in tests] or [value]
        yield judge(f"Friedman {name}", printed, value, (min(reached), max(reached)), why)
    diagram = critical_difference_diagram(printed_table)
    yield claim(
        "daggers of the headline table",
        "no method differs from the best by Nemenyi",
        f"worst minus best rank {diagram.ranks.iloc[-1] - diagram.ranks.iloc[0]:.2f}, CD {diagram.difference:.2f}",
        len(diagram.cliques) == 1 and len(diagram.cliques[0]) == len(HEADLINE),
    )
    order = sorted(HEADLINE, key=lambda method: float(RANKS[method]))
    yield claim(
        "order of the headline table",
        "ordered by overall average rank",
        f"printed order {' '.join(HEADLINE)}; by rank {' '.join(order)}",
        order == list(HEADLINE),
    )


def check_pairwise() -> Iterator[Check]:
    """LTGA-Edge against fifteen methods, datasets as observations."""
    edge = PRINTED_MEANS["ltga-edge"]
    table = PRINTED_MEANS[["ltga-edge", *(row.control for row in PAIRWISE)]]
    ours = compare_across_datasets(table, "ltga-edge", ALPHA).to_dict("records")
    n = len(DATASETS)
    for row, test in zip(PAIRWISE, ours, strict=True):
        where = f"pairwise, ltga-edge against {row.control}"
        difference = (edge - PRINTED_MEANS[row.control]).round(6).to_numpy()
        mean, counts = float(difference.mean()), _counts(row.counts)
        yield judge(f"{where}: difference", row.difference, mean, (mean - PAIR_SLACK, mean + PAIR_SLACK))
        effects = effect_range(difference, PAIR_SLACK)
        yield judge(f"{where}: Cohen's d", row.d, float(test["cohens_d"]), effects)
        wilcoxon = wilcoxon_range(difference, PAIR_SLACK, counts)
        recomputed = wins_losses_ties(difference, np.zeros(n))
        verdict: Verdict = "follows" if recomputed == counts else "contradiction" if wilcoxon is None else "rounding"
        yield Check(f"{where}: wins/losses/ties", row.counts, str(recomputed), verdict)
        yield claim(f"{where}: test", row.test, str(test["test"]), _test(row.test) == test["test"])
        reachable = t_test_range(effects, n) if row.test == "t" else wilcoxon or (1.0, 1.0)
        yield judge(f"{where}: p, taken as uncorrected", row.p, float(test["p"]), reachable)
    yield _holm_column()
    counted = {sum(_counts(row.counts)) for row in PAIRWISE}
    yield claim(
        "pairwise, caption",
        "per-dataset comparisons over 10 seeds",
        f"wins, losses and ties add up to {' or '.join(map(str, counted))}: one observation per dataset",
        counted == {10},
    )


def _holm_column() -> Check:
    """The column "p (Holm)" against the smallest p that Holm's method can give for these counts."""
    n = len(DATASETS)
    smallest = smallest_possible_holm([_smallest_p(_test(row.test), _counts(row.counts)) for row in PAIRWISE])
    impossible = [row.control for row, p in zip(PAIRWISE, smallest, strict=True) if float(row.p) + 0.0005 < p]
    uncorrected = [float(row.p) for row in PAIRWISE]
    from_d = [
        row.control
        for row in PAIRWISE
        if row.test == "t" and could_print_as(t_test_range((float(row.d) - 0.005, float(row.d) + 0.005), n), row.p)
    ]
    return claim(
        'pairwise, column "p (Holm)"',
        " ".join(row.p for row in PAIRWISE),
        " ".join(f"{p:.3f}" for p in holm(uncorrected)),
        not impossible,
        f"impossible after Holm over {len(PAIRWISE)} for {', '.join(impossible)}; the p of {', '.join(from_d)} "
        "is the uncorrected one of the printed d, so all are taken as uncorrected and corrected here",
    )


def check_seeds() -> Iterator[Check]:
    """LTGA-Edge against GAT and GATv2 per dataset; the p-values need the single runs and cannot be recomputed."""
    for row in SEEDS:
        for control, printed in (("gat", row.gat), ("gatv2", row.gatv2)):
            value = printed_mean("ltga-edge", row.dataset) - printed_mean(control, row.dataset)
            yield judge(
                f"per dataset, ltga-edge against {control} on {row.dataset}: difference",
                printed,
                value,
                (value - PAIR_SLACK, value + PAIR_SLACK),
            )
    p_values = [p for row in SEEDS for p in (row.gat_p, row.gatv2_p)]
    adjusted = dict(zip(p_values, holm([float(p.rstrip("*")) for p in p_values]), strict=True))
    starless = [p for p in p_values if float(p.rstrip("*")) < ALPHA and not p.endswith("*")]
    yield claim(
        "per dataset, p said to be corrected by Holm",
        f"{', '.join(starless)} without a star, smaller ones with",
        f"as it must be if the printed p are uncorrected: Holm makes {adjusted[starless[0]]:.3f} of it",
        False,
        "of twelve rerun ten match, uncorrected; LTGA-Edge against GATv2 on Roman-Empire is then not significant",
    )
    others = [float(p.rstrip("*")) for p in p_values if float(p.rstrip("*")) >= ALPHA]
    yield judge("per dataset, smallest p on the other six datasets", "0.12", min(others), (min(others), min(others)))


def _counts(printed: str) -> WinsLossesTies:
    return WinsLossesTies(*map(int, printed.split("/")))


def _test(printed: str) -> Test:
    return "paired t" if printed == "t" else "Wilcoxon"


def _smallest_p(test: Test, counts: WinsLossesTies) -> float:
    """The smallest p with these counts: for Wilcoxon, the rarer sign has the smallest ranks."""
    if test == "paired t":
        return 0.0
    rarer, n = min(counts.wins, counts.losses), counts.wins + counts.losses
    return float(stats.wilcoxon([-rank if rank <= rarer else rank for rank in range(1, n + 1)]).pvalue)
