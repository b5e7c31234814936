"""The catalogue's datasets for other tasks than node classification, and the two graphs made for transfer."""

from __future__ import annotations

from ltga.data.facts import Facts, KnownFile
from ltga.data.known_files import MOLECULENET, TRIPLES, TU, TWITCH

# The home of the TU collection serves zip archives, so the sha256 of what is inside is what identifies a file.
TU_ARCHIVES = "https://www.chrsmrrs.com/graphkerneldatasets"


def _tu(name: str) -> tuple[KnownFile, ...]:
    def file(part: str, known: tuple[int, str]) -> KnownFile:
        inside = f"{name}/{name}_{part}.txt"
        return KnownFile(f"raw/tu/{inside}", *known, upstream_path=inside, archive=f"{TU_ARCHIVES}/{name}.zip")

    return tuple(file(part, known) for part, known in TU[name].items())


def _molecules(name: str) -> tuple[KnownFile, ...]:
    return (KnownFile(f"raw/moleculenet/{name}", *MOLECULENET[name], "deepchem/deepchem", f"datasets/{name}"),)


def _twitch(language: str) -> tuple[KnownFile, ...]:
    repository, folder = "CUAI/Non-Homophily-Large-Scale", f"twitch/{language}/musae_{language}"
    files = TWITCH[language].items()
    return tuple(KnownFile(f"raw/{folder}_{end}", *known, repository, f"data/{folder}_{end}") for end, known in files)


def _triples(name: str) -> tuple[KnownFile, ...]:
    def file(part: str, known: tuple[int, str]) -> KnownFile:
        upstream = "/".join(("src", "pykeen", "datasets", name, part))
        return KnownFile(f"raw/kg/{name}/{part}", *known, "pykeen/pykeen", upstream)

    return tuple(file(part, known) for part, known in TRIPLES[name].items())


_ATTRIBUTES = "features are node labels, as usual; attributes=1 puts the files' numbers before them (scale=1: scaled)"
_NO_LICENCE = "none stated"
_SKEWED = "views span seven orders of magnitude: predict their logarithm, or expect the error of a few stars"
_OWN_SPLITS = "no published splits: ten seeded stratified ones, 60/20/20"

OTHER_TASKS = (
    Facts(
        "mutag", "tu", "TU collection", _NO_LICENCE, 3371, 7442, "both directions", 7, 2, 10,
        raw=_tu("MUTAG"), task="graph classification", graphs=188,
        traps=("188 graphs: a fold tests on 18 or 19, so folds differ by many points",),
        about="nitroaromatic compounds, mutagenic or not",
        paper="Debnath et al., J. Med. Chem. 1991; Morris et al., 2020",
    ),
    Facts(
        "proteins", "tu", "TU collection", _NO_LICENCE, 43471, 162088, "both directions", 3, 2, 10,
        raw=_tu("PROTEINS"), task="graph classification", graphs=1113, traps=(_ATTRIBUTES,),
        about="proteins as secondary structures, enzymes or not",
        paper="Borgwardt et al., Bioinformatics 2005; Morris et al., 2020",
    ),
    Facts(
        "enzymes", "tu", "TU collection", _NO_LICENCE, 19580, 74564, "both directions", 3, 6, 10,
        raw=_tu("ENZYMES"), task="graph classification", graphs=600, traps=(_ATTRIBUTES,),
        about="enzymes as secondary structures, by their top-level class",
        paper="Borgwardt et al., Bioinformatics 2005; Morris et al., 2020",
    ),
    Facts(
        "mutagenicity", "tu", "TU collection", _NO_LICENCE, 131488, 266894, "both directions", 14, 2, 10,
        raw=_tu("Mutagenicity"), task="graph classification", graphs=4337,
        about="drug-like compounds, mutagenic or not",
        paper="Kazius et al., J. Med. Chem. 2005; Morris et al., 2020",
    ),
    Facts(
        "aids", "tu", "TU collection", _NO_LICENCE, 31385, 64780, "both directions", 38, 2, 10,
        raw=_tu("AIDS"), task="graph classification", graphs=2000,
        traps=(_ATTRIBUTES, "logistic regression on the counts of atoms gives 99.7 %: compare with such a baseline"),
        about="compounds, active against HIV or not",
        paper="Riesen and Bunke, SSPR 2008; Morris et al., 2020",
    ),
    Facts(
        "esol", "molecules", "deepchem/deepchem", "MIT", 14991, 30856, "both directions", 39, 0, 10, metric="rmse",
        raw=_molecules("delaney-processed.csv"), task="graph regression", graphs=1128,
        traps=("needs rdkit: pip install 'ltga[molecules]'",),
        about="small molecules and the logarithm of their solubility",
        paper="Delaney, J. Chem. Inf. Comput. Sci. 2004; Wu et al., Chem. Sci. 2018",
    ),
    Facts(
        "tox21", "molecules", "deepchem/deepchem", "MIT", 148147, 307832, "both directions", 39, 12, 10,
        metric="roc_auc", raw=_molecules("tox21.csv.gz"), task="multi-label graphs", graphs=8006,
        traps=(
            "needs rdkit: pip install 'ltga[molecules]'",
            "8 of 8,014 molecules do not parse and are left out; 183 rows repeat a molecule, which keep to one fold",
            "labels are missing where a compound was not tested",
        ),
        about="compounds and their effect in twelve toxicity tests",
        paper="Tox21 Challenge 2014; Wu et al., Chem. Sci. 2018",
    ),
    Facts(
        "twitch-de", "twitch", "CUAI/Non-Homophily-Large-Scale", _NO_LICENCE,
        9498, 153138, "undirected, once", 3170, 2, 10, undirected=153138, homophily=0.6322,
        raw=_twitch("DE"), targets=("mature", "views", "days"), traps=(_OWN_SPLITS, _SKEWED),
        about="streamers of one language and their friendships",
        paper="Rozemberczki et al., 2021",
    ),
    Facts(
        "twitch-engb", "twitch", "CUAI/Non-Homophily-Large-Scale", _NO_LICENCE,
        7126, 35324, "undirected, once", 3170, 2, 10, undirected=35324, homophily=0.5560,
        raw=_twitch("ENGB"), targets=("mature", "views", "days"), traps=(_OWN_SPLITS, _SKEWED),
        about="streamers of one language and their friendships",
        paper="Rozemberczki et al., 2021",
    ),
    Facts(
        "umls", "triples", "pykeen/pykeen", "MIT", 135, 6529, "directed", 0, 46, 1, (5216, 652, 661), metric="mrr",
        raw=_triples("umls"), task="typed link prediction",
        traps=("nodes have no features", "135 nodes share 6,529 triples: far denser than a usual knowledge graph"),
        about="medical concepts and how they are related",
        paper="McCray, Comp. Funct. Genomics 2003; Kok and Domingos, ICML 2007",
    ),
    Facts(
        "kinships", "triples", "pykeen/pykeen", "MIT", 104, 10686, "directed", 0, 25, 1, (8544, 1068, 1074),
        metric="mrr", raw=_triples("kinships"), task="typed link prediction",
        traps=("nodes have no features", "nearly every pair of people has a kinship term"),
        about="members of a tribe and their kinship terms",
        paper="Denham, 1973; Kok and Domingos, ICML 2007",
    ),
)  # fmt: skip
