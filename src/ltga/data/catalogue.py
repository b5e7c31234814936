"""The one table of what is known about each dataset, and the files it is made of."""

from __future__ import annotations

from ltga.data.catalogue_of_tasks import OTHER_TASKS
from ltga.data.facts import COMMITS, Facts, KnownFile
from ltga.data.known_files import GEOM_GCN_EDGES, GEOM_GCN_NODES, GEOM_GCN_SPLITS, PLANETOID

__all__ = [
    "CATALOGUE",
    "COMMITS",
    "IMPOSTORS",
    "Facts",
    "KnownFile",
    "known_by_sha256",
]


def _npz(stem: str, size: int | None, sha256: str | None, upstream: bool = False) -> KnownFile:
    name = f"{stem}.npz"
    if not upstream:
        return KnownFile(name, size, sha256)
    return KnownFile(name, size, sha256, "yandex-research/heterophilous-graphs", f"data/{name}")


def _planetoid(name: str) -> tuple[KnownFile, ...]:
    return tuple(
        KnownFile(f"raw/planetoid/ind.{name}.{part}", *known, "kimiyoung/planetoid", f"data/ind.{name}.{part}")
        for part, known in PLANETOID[name].items()
    )


def _geom_gcn(folder: str, repository: str = "graphdml-uiuc-jlu/geom-gcn") -> tuple[KnownFile, ...]:
    def file(path: str, known: tuple[int, str], source: str) -> KnownFile:
        return KnownFile(f"raw/geom-gcn/{path}", *known, source, path)

    new_data = f"new_data/{folder}/out1"
    splits = enumerate(GEOM_GCN_SPLITS[folder])
    return (
        file(f"{new_data}_node_feature_label.txt", GEOM_GCN_NODES[folder], repository),
        file(f"{new_data}_graph_edges.txt", GEOM_GCN_EDGES[folder], repository),
        *(file(f"splits/{folder}_split_0.6_0.2_{i}.npz", known, "graphdml-uiuc-jlu/geom-gcn") for i, known in splits),
    )


_SPLIT_NAMES = "split files are named 0.6/0.2 but hold about 48/32/20 per cent"
_LOOPS = "links are directed and include self-loops; they are not made symmetric"

_TABLE = (
    Facts(
        "cora", "planetoid", "kimiyoung/planetoid", "MIT",
        2708, 10556, "both directions", 1433, 7, 1, (140, 500, 1000), 5278, homophily=0.8100,
        packed=_npz("cora", 115511, "f565f38f8639e83c8ed7317a409e289318dba20380826343e2675c3bcb1e2051"),
        raw=_planetoid("cora"),
        about="machine-learning papers and their citations",
        paper="Sen et al., AI Magazine 2008; splits of Yang et al., ICML 2016",
    ),
    Facts(
        "citeseer", "planetoid", "kimiyoung/planetoid", "MIT",
        3327, 9104, "both directions", 3703, 6, 1, (120, 500, 1000), 4552, homophily=0.7355,
        packed=_npz("citeseer", 216339, "f4d57c2c5aa3d39843b4639978e0d53eca17fce443e98e4772d9b56819afc603"),
        raw=_planetoid("citeseer"),
        traps=("15 nodes are missing from the test index: zero features, class 0, in no split",),
        about="computer-science papers and their citations",
        paper="Sen et al., AI Magazine 2008; splits of Yang et al., ICML 2016",
    ),
    Facts(
        "pubmed", "planetoid", "kimiyoung/planetoid", "MIT",
        19717, 88648, "both directions", 500, 3, 1, (60, 500, 1000), 44324, homophily=0.8024,
        packed=_npz("pubmed", 4892274, "30df7b52f9c93c9060980b575a9b39acdecc271ab6dd25d1d807de1b2d3c273d"),
        raw=_planetoid("pubmed"),
        about="diabetes papers and their citations",
        paper="Namata et al., MLG 2012; splits of Yang et al., ICML 2016",
    ),
    Facts(
        "texas", "geom-gcn", "graphdml-uiuc-jlu/geom-gcn", "none stated",
        183, 325, "directed", 1703, 5, 10, (87, 59, 37), 295, 16, 0.1119,
        packed=_npz("texas", 28722, "3ddc7ad10e74a9285fd988c5c5196326a4014ed50617d672f158188b48ad7b8d"),
        raw=_geom_gcn("texas"),
        traps=(_SPLIT_NAMES, _LOOPS, "one class has a single node"),
        about="web pages of a university and their links",
        paper="Craven et al., AAAI 1998; splits of Pei et al., ICLR 2020",
    ),
    Facts(
        "wisconsin", "geom-gcn", "graphdml-uiuc-jlu/geom-gcn", "none stated",
        251, 515, "directed", 1703, 5, 10, (120, 80, 51), 466, 16, 0.2060,
        packed=_npz("wisconsin", 41834, "45686372016a64b4b8fbb4135fe497805d90ad98091842caef44b26b479fd625"),
        raw=_geom_gcn("wisconsin"),
        traps=(_SPLIT_NAMES, _LOOPS),
        about="web pages of a university and their links",
        paper="Craven et al., AAAI 1998; splits of Pei et al., ICLR 2020",
    ),
    Facts(
        "cornell", "geom-gcn", "bingzhewei/geom-gcn", "none stated",
        183, 298, "directed", 1703, 5, 10, (87, 59, 37), 280, 3, 0.1321,
        packed=_npz("cornell", 30563, "22acb60375a504957769378754e18d3ee1966031b3f8f6a5ac61394030760bbd"),
        raw=_geom_gcn("cornell", "bingzhewei/geom-gcn"),
        traps=(
            "the widely mirrored copy carries the words and labels of Texas (homophily .30); refused here",
            "Platonov et al. ship it undirected and without self-loops (277 edges); refused under this name",
            _SPLIT_NAMES,
            _LOOPS,
        ),
        about="web pages of a university and their links",
        paper="Craven et al., AAAI 1998; splits of Pei et al., ICLR 2020",
    ),
    Facts(
        "roman-empire", "npz", "yandex-research/heterophilous-graphs", "MIT",
        22662, 32927, "undirected, once", 300, 18, 10, undirected=32927, homophily=0.05,
        packed=_npz(
            "roman_empire", 20401489, "a58ba741d123bf892fe5c872138d07463d75a2e9012360b8dd78ac2d4766d428", True
        ),
        traps=("homophily as published, to two digits",),
        about="words of an encyclopedia article and their syntax",
        paper="Platonov et al., ICLR 2023",
    ),
    Facts(
        "amazon-ratings", "npz", "yandex-research/heterophilous-graphs", "MIT",
        24492, 93050, "undirected, once", 300, 5, 10, undirected=93050, homophily=0.38,
        packed=_npz("amazon_ratings", None, None, True),
        traps=("sha256 not known: the file is recognised by its shape", "homophily as published"),
        about="products that are bought together",
        paper="Platonov et al., ICLR 2023",
    ),
    Facts(
        "actor", "geom-gcn", "graphdml-uiuc-jlu/geom-gcn", "none stated",
        7600, 30019, "directed", 932, 5, 10, (3648, 2432, 1520), 26752, 93, 0.2195,
        packed=_npz("actor", 267386, "521c5324de4dd8cac3a8f60281a643b38750b60c8ce6106021ef3a21c49556c2"),
        raw=_geom_gcn("film"),
        traps=("called film upstream", "its header says 931 features, there are 932", _SPLIT_NAMES, _LOOPS),
        about="actors named on the same web page",
        paper="Tang et al., KDD 2009; splits of Pei et al., ICLR 2020",
    ),
    Facts(
        "minesweeper", "npz", "yandex-research/heterophilous-graphs", "MIT",
        10000, 39402, "undirected, once", 7, 2, 10, (5000, 2500, 2500), 39402, 0, 0.6828, "roc_auc",
        packed=_npz(
            "minesweeper", 135045, "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3", True
        ),
        traps=("binary and unbalanced: its authors report ROC AUC",),
        about="cells of a minesweeper board",
        paper="Platonov et al., ICLR 2023",
    ),
    Facts(
        "tolokers", "npz", "yandex-research/heterophilous-graphs", "MIT",
        11758, 519000, "undirected, once", 10, 2, 10, (5879, 2939, 2940), 519000, 0, 0.5945, "roc_auc",
        packed=_npz(
            "tolokers", 1329769, "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667", True
        ),
        traps=("binary and unbalanced: its authors report ROC AUC",),
        about="crowd workers who shared a task",
        paper="Platonov et al., ICLR 2023",
    ),
    Facts(
        "chameleon-filtered", "npz", "yandex-research/heterophilous-graphs", "MIT",
        890, 8854, "undirected, once", 2325, 5, 10, (409, 287, 194), 8854, homophily=0.2361,
        packed=_npz(
            "chameleon_filtered", 58924, "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5",
            True,
        ),
        traps=("without the duplicate nodes of the original Chameleon: numbers do not compare",),
        about="Wikipedia pages and their links",
        paper="Rozemberczki et al., 2021; filtered by Platonov et al., ICLR 2023",
    ),
    Facts(
        "squirrel-filtered", "npz", "yandex-research/heterophilous-graphs", "MIT",
        2223, 46998, "undirected, once", 2089, 5, 10, (1053, 718, 452), 46998, homophily=0.2072,
        packed=_npz(
            "squirrel_filtered", 208215, "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7",
            True,
        ),
        traps=("without the duplicate nodes of the original Squirrel: numbers do not compare",),
        about="Wikipedia pages and their links",
        paper="Rozemberczki et al., 2021; filtered by Platonov et al., ICLR 2023",
    ),
    Facts(
        "roman-words", "npz", "yandex-research/heterophilous-graphs; word vectors of this project",
        "MIT; words CC BY-SA (Wikipedia)",
        22662, 32927, "undirected, once", 300, 18, 10, (11331, 5665, 5666), 32927, homophily=0.0469,
        packed=_npz(
            "roman_words", 3189171, "3bc02e6b20589e25eded3566473183fee99c17fde564d5d606a5b8256a1a95a5"
        ),
        traps=("Roman-Empire's graph, labels and splits with other word vectors: not its published features",),
        about="words of an encyclopedia article and their syntax",
        paper="Platonov et al., ICLR 2023, with word vectors of this project",
    ),
    Facts(
        "gum-syntax", "npz", "UniversalDependencies/UD_English-GUM", "CC BY-NC-SA 4.0",
        22881, 35426, "undirected, once", 300, 18, 10, (11440, 5720, 5721), 35426, homophily=0.0424,
        packed=_npz(
            "gum_syntax", 3179180, "f42952052acc1271f9090382918be2968b9bd9243242b717535f48e70bf679be"
        ),
        traps=("a stand-in, not Roman-Empire: do not set its numbers beside published ones",),
        about="words of English texts and their syntax",
        paper="this project, from Zeldes, LRE 2017",
    ),
    Facts(
        "gum-syntax-large", "npz",
        "UniversalDependencies/UD_English-GUM and UniversalDependencies/UD_English-EWT",
        "CC BY-NC-SA 4.0 (GUM part), CC BY-SA 4.0 (EWT part)",
        377724, 583714, "undirected, once", 300, 18, 10, (188862, 94431, 94431), 583714, homophily=0.0382,
        packed=_npz(
            "gum_syntax_large", 18093647, "87232763c946704a0404723fca8fa6efb55544bae78482f817a05845f620beeb"
        ),
        traps=("a stand-in, not Roman-Empire", "its class order differs from gum-syntax: read class_names"),
        about="words of English texts and their syntax",
        paper="this project, from Zeldes, LRE 2017 and Silveira et al., LREC 2014",
    ),
    Facts(
        "csbm", "generated", "ltga.data.synthetic", "MIT", 1000, None, "both directions", 16, 2, 10,
        (600, 200, 200), homophily=0.5,
        traps=("random: the edge count and measured homophily vary with the seed",),
        about="two noisy communities, drawn at random",
        paper="contextual block model of Deshpande et al., NeurIPS 2018",
    ),
    Facts(
        "digits-noise", "generated", "sklearn.datasets.load_digits", "as distributed with scikit-learn",
        1797, None, "both directions", 64, 10, 10,
        traps=("a known share of its edges is planted noise: see data.planted_edge",),
        about="handwritten digits, their nearest neighbours, and planted noise",
        paper="this project, from Alpaydin and Kaynak, 1998",
    ),
)  # fmt: skip

CATALOGUE: dict[str, Facts] = {facts.name: facts for facts in (*_TABLE, *OTHER_TASKS)}

# Files that pass for a dataset but are something else, by sha256.
_MIRRORED_CORNELL = (
    "the widely mirrored Cornell whose words and labels are those of Texas (links of one university, "
    "pages of another); use the corrected files from bingzhewei/geom-gcn"
)
IMPOSTORS: dict[str, str] = {
    "77622f29ca9d6519ab9738c5720a32e6fe0bf21d731fd3ab1ff7c0479c6c3333": _MIRRORED_CORNELL,
    "c4522a00cc40873c8a04a3a07c49e24a48a507eb284ac9c9f2d3e0590351bbb7": _MIRRORED_CORNELL,
    "684c54ba3daa13b0ba1f04a3d6dd1b1175c1ae9bdeb982851fd4ff96d3aac298": (
        "Cornell as Platonov et al. ship it, undirected and without self-loops; the paper's is directed"
    ),
}


def known_by_sha256() -> dict[str, tuple[Facts, KnownFile]]:
    """Every known file by its sha256, with the dataset it belongs to."""
    known: dict[str, tuple[Facts, KnownFile]] = {}
    for facts in CATALOGUE.values():
        for file in (*facts.raw, *((facts.packed,) if facts.packed else ())):
            if file.sha256 is not None:
                known[file.sha256] = (facts, file)
    return known
