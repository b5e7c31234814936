"""The catalogue against the paper: its labels, its grids, its counts."""

import pytest

from ltga.data import CATALOGUE, load_graph
from ltga.errors import InputError
from ltga.nn.methods import METHODS
from ltga.study import EXPERIMENTS, RunSpec, find_experiments, runs_of
from ltga.study.select import select
from ltga.train import Protocol

# Every \label{tab:...} and \label{fig:...} of the paper; fig:ltga_arch is a drawing.
LABELS = [
    "tab:main", "tab:pairwise_seeds", "tab:pairwise", "tab:composition", "tab:pruning", "tab:ltga_acc",
    "tab:ltga_q_stats", "tab:q_analysis", "tab:fixed_q", "tab:entmax", "tab:edge_controls", "tab:hetero",
    "tab:abl_cross", "tab:abl_lambda", "tab:abl_warmup", "tab:abl_kappa", "tab:abl_delta",
    "tab:abl_granularity", "tab:depth", "fig:cd_diagram", "fig:calibration", "fig:attn_dist",
    "fig:edge_q_dist", "fig:q_overview", "fig:gate_analysis", "fig:ablations", "fig:q_traj", "fig:fixed_q",
    "fig:alpha_grad",
]  # fmt: skip


def of(name: str, **wanted: object) -> list[RunSpec]:
    specs = EXPERIMENTS[name].runs
    return [spec for spec in specs if all(getattr(spec, key) == value for key, value in wanted.items())]


def test_every_table_and_figure_has_one_entry_and_its_paired_twin_at_most() -> None:
    labels = [experiment.label for name, experiment in EXPERIMENTS.items() if not name.endswith("-paired")]
    labels = [label for label in labels if label != "own"]
    assert sorted(labels) == sorted([*LABELS, "sec:discussion"])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_entry_names_things_that_exist_and_no_run_twice(name: str) -> None:
    experiment = EXPERIMENTS[name]
    assert experiment.name == name and experiment.title and experiment.shows
    assert set(experiment.methods) <= set(METHODS)
    assert {dataset.partition(":")[0] for dataset in experiment.datasets} <= set(CATALOGUE)
    assert len(set(experiment.runs)) == len(experiment.runs) > 0


def test_the_headline_is_seven_methods_ten_seeds_on_the_eight_datasets_and_two_stand_ins() -> None:
    assert len(EXPERIMENTS["headline"].runs) == 7 * 10 * 10
    assert {spec.protocol for spec in EXPERIMENTS["headline"].runs} == {Protocol()}
    assert {spec.protocol for spec in EXPERIMENTS["headline-paired"].runs} == {Protocol(init="paired")}
    assert len(EXPERIMENTS["headline-paired"].runs) == len(EXPERIMENTS["headline"].runs)


def test_the_stand_ins_are_marked_and_go_wherever_roman_empire_goes() -> None:
    for experiment in EXPERIMENTS.values():
        if experiment.label == "own":
            continue
        for name in ("roman-words", "gum-syntax"):
            assert (name in experiment.datasets) == ("roman-empire" in experiment.datasets)
        if "gum-syntax" in experiment.datasets:
            assert experiment.stand_ins == {"roman-words": "roman-empire", "gum-syntax": "roman-empire"}
    for name in ("roman-words", "gum-syntax"):
        assert of("headline", dataset=name)[0].stand_in == "roman-empire"
    assert of("headline", dataset="roman-empire")[0].stand_in is None


@pytest.mark.parametrize(
    ("name", "setting", "values"),
    [
        ("sweep-lambda", "prior", {0.0, 0.01, 0.1, 0.5, 1.0}),
        ("sweep-warmup", "warmup", {0, 50, 100, 200}),
        ("sweep-kappa", "kappa", {1.0, 5.0, 10.0, 50.0}),
        ("sweep-delta", "delta", {0.25, 0.5, 1.0, 1.5, 2.0}),
        ("depth", "num_layers", {2, 4, 8}),
    ],
)
def test_a_sweep_has_the_papers_values_and_five_seeds(name: str, setting: str, values: set[float]) -> None:
    runs = of(name, dataset="roman-empire", method="ltga-head")
    assert {getattr(spec.protocol, setting) for spec in runs} == values
    assert {spec.seed for spec in runs} == {1, 2, 3, 4, 5}
    assert len(runs) == 5 * len(values)
    assert all(set(spec.overrides) <= {setting} for spec in runs)


def test_the_cross_dataset_sweep_is_thirteen_rows_per_dataset() -> None:
    for dataset in ("cora", "wisconsin", "amazon-ratings", "roman-empire"):
        # 13 rows in the table; lambda = 0 and kappa = 1 are one and the same run here.
        assert len(of("sweep-cross", dataset=dataset)) == 12 * 5
        assert {spec.split for spec in of("sweep-cross", dataset=dataset)} == {0 if dataset == "wisconsin" else None}
    assert set(EXPERIMENTS["sweep-cross"].methods) == {"ltga-head"}


def test_shared_runs_are_counted_once() -> None:
    assert set(EXPERIMENTS["q-trajectories"].runs) <= set(EXPERIMENTS["headline"].runs)
    both = runs_of([EXPERIMENTS["headline"], EXPERIMENTS["granularity"]])
    assert both == EXPERIMENTS["headline"].runs
    assert set(of("sweep-lambda", protocol=Protocol())) <= set(EXPERIMENTS["headline"].runs)


def test_the_synthetic_graphs_are_two_degrees_from_snr_tenth_to_two_at_equal_homophily() -> None:
    datasets = EXPERIMENTS["synthetic"].datasets
    assert "csbm:degree=20,seed=5,snr=0.1" in datasets and "csbm:seed=1,snr=2" in datasets
    assert not any("homophily" in name for name in datasets)  # 0.5 is the generator's default
    assert len(datasets) == 2 * 5 * 5


def test_a_part_can_be_selected_and_nonsense_is_refused() -> None:
    runs = select(EXPERIMENTS["headline"].runs, ["gum-syntax"], ["gatv2", "ltga-head"], seeds=5)
    assert len(runs) == 10
    with pytest.raises(InputError, match="methods: no chosen experiment uses 'h2gcn'"):
        select(EXPERIMENTS["headline"].runs, methods=["h2gcn"])
    with pytest.raises(InputError, match="did you mean 'depth'"):
        find_experiments(["dept"])


def test_a_generated_graph_is_named_as_its_runs_will_be() -> None:
    names = {name for experiment in EXPERIMENTS.values() for name in experiment.datasets}
    generated = {name for name in names if name.partition(":")[0] in ("csbm", "digits-noise")}
    assert len(generated) > 20
    for name in generated:
        assert load_graph(name).name == name
