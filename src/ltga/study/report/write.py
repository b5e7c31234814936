"""A report on disk: every table, every figure, one Markdown file and one page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ltga.data.atomic import write_atomic
from ltga.errors import InputError
from ltga.study import EXPERIMENTS, Experiment, Store
from ltga.study.report.figures.style import save
from ltga.study.report.render import FORMATS, report_to_markdown
from ltga.study.report.runs import Study
from ltga.study.report.sections import Section, make_section
from ltga.study.report.web_page import render_page

SUFFIXES = (*FORMATS, ".svg", ".png")
TITLE = "Learnable Tsallis graph attention: the study"


@dataclass(frozen=True)
class Written:
    """What was written: the page, how much is in it, and which files of the store were left out, and why."""

    page: Path
    tables: int
    figures: int
    runs: int
    imported: int
    damaged: Mapping[str, str]


def write_report(
    experiments: Sequence[Experiment],
    store: str | Path | Store,
    out: str | Path,
    root: str | Path | None = None,
    title: str = TITLE,
    analyses: str | Path | None = None,
    watch: Callable[[str], None] = lambda _: None,
) -> Written:
    """Write the report of these experiments, from the runs in a store, into a folder.

    ``index.html`` is the page; ``README.md`` has the same tables and figures for a repository;
    ``tables/`` holds every table as Markdown, CSV (and the runs behind it) and LaTeX, ``figures/`` every
    figure as SVG and PNG. What an earlier report of the same
    experiments left there and is not made again is removed.

    Args:
        experiments: what to show, in order.
        store: a store, its folder, or an archive of records.
        out: where to write; made if it does not exist.
        root: folder with datasets; reliability diagrams and analyses of models need them.
        analyses: folder where the results of analyses are kept (default: ``analyses`` in the store).
        watch: told what is being computed.
    """
    folder = Path(out)
    study = Study(store, root, analyses, watch)
    tables, figures = folder / "tables", folder / "figures"
    with _naming_the_file(folder):
        for part in (tables, figures):
            part.mkdir(parents=True, exist_ok=True)
    sections = [make_section(study, experiment) for experiment in experiments]
    with _naming_the_file(folder):
        svgs = _write_files(folder, title, sections)
    archives = study.archives(*experiments)
    count = sum(len(section.tables) for section in sections)
    imported = sum(archive != "" for archive in archives.values())
    return Written(folder / "index.html", count, len(svgs), len(archives), imported, study.damaged)


@contextmanager
def _naming_the_file(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = error.filename or folder
        raise InputError(
            f"out: cannot write {where} ({reason}); make room or give a folder that can be written"
        ) from None


def _write_files(folder: Path, title: str, sections: Sequence[Section]) -> dict[str, str]:
    """Write everything and remove what is stale; returns the figures as SVG by name."""
    tables, figures = folder / "tables", folder / "figures"
    svgs: dict[str, str] = {}
    written = set()
    for section in sections:
        for table in section.tables:
            for suffix, render in FORMATS.items():
                path = tables / f"{table.name}{suffix}"
                _write(path, render(table))
                written.add(path)
        for drawing in section.drawings:
            svgs[drawing.name] = save(drawing.figure, figures, drawing.name)
            written |= {figures / f"{drawing.name}.svg", figures / f"{drawing.name}.png"}
    made = {section.experiment.name for section in sections}
    _remove_stale((*tables.iterdir(), *figures.iterdir()), made, written)
    _write(folder / "README.md", report_to_markdown(title, sections))
    _write(folder / "index.html", render_page(title, sections, svgs))
    return svgs


def _remove_stale(files: Iterable[Path], made: set[str], written: set[Path]) -> None:
    """What an earlier report left of these experiments: a figure that cannot be drawn now must not look like a new one.

    A file belongs to the experiment with the longest name that it begins with; those of others are left alone.
    """
    for path in files:
        owners = [name for name in EXPERIMENTS if re.match(rf"{re.escape(name)}[-.]", path.name)]
        if owners and max(owners, key=len) in made and path not in written and path.name.endswith(SUFFIXES):
            path.unlink()


def _write(path: Path, text: str) -> None:
    write_atomic(path, lambda stream: stream.write(text.encode()))
