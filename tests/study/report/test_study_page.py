"""The report's page: as text, and in a real browser at two widths."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ltga.cli.app import app
from ltga.errors import LTGAError
from ltga.study import EXPERIMENTS, Experiment
from ltga.study.experiment import grid
from ltga.study.report import write_report
from oracles.records import make_record, write_records

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a few experiments, one of them on a dataset with a hostile name."""
    folder = tmp_path_factory.mktemp("report")
    records = [
        make_record("texas", m, s, test=0.5 + 0.01 * k)
        for k, m in enumerate(("gcn", "gat", "gatv2"))
        for s in range(1, 11)
    ]
    records += [make_record("gum-syntax", m, s, test=0.7, q=1.5) for m in ("ltga-head", "gatv2") for s in (1, 2)]
    records += [make_record(HOSTILE, "gat", s, test=0.6) for s in (1, 2)]
    hostile = Experiment("mine", f"Mine {HOSTILE}", "tab:mine", HOSTILE, grid([HOSTILE], ["gat", "gcn"], [1, 2]))
    chosen = [EXPERIMENTS["headline"], hostile, EXPERIMENTS["q-trajectories"], EXPERIMENTS["synthetic"]]
    store = write_records(folder / "store", records)
    written = write_report(chosen, store, folder / "out", folder / "no data")
    assert (written.tables, written.figures, written.runs) == (4, 2, 36)
    return folder / "out"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_loads_nothing_and_escapes_names(out: Path) -> None:
    text = (out / "index.html").read_text()
    tags = Tags(text).tags
    assert [tag for tag, _ in tags].count("script") == 2 and "img" not in [tag for tag, _ in tags]
    for tag, attributes in tags:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes), tag
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,")), tag
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert any(run[1] == HOSTILE for run in data["runs"])


def test_all_files_are_there(out: Path) -> None:
    tables, suffixes = ("headline", "headline-tests", "mine", "synthetic"), (".md", ".csv", ".tex", ".runs.csv")
    assert {path.name for path in (out / "tables").iterdir()} == {a + b for a in tables for b in suffixes}
    assert {path.name for path in (out / "figures").iterdir()} == {
        f"{name}{suffix}" for name in ("q-trajectories", "q-trajectories-heads") for suffix in (".svg", ".png")
    }
    text = (out / "README.md").read_text()
    assert "<script>" not in text and "<img" not in text and "figures/q-trajectories.svg" in text
    assert "## Not run yet\n\n- synthetic" in text


def test_a_report_is_the_same_twice(out: Path, tmp_path: Path) -> None:
    write_report([EXPERIMENTS["q-trajectories"]], out.parent / "store", tmp_path / "a")
    write_report([EXPERIMENTS["q-trajectories"]], out.parent / "store", tmp_path / "b")
    first, second = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second


def test_the_command(out: Path, tmp_path: Path) -> None:
    store = str(out.parent / "store")
    result = CliRunner().invoke(app, ["suite", "report", "headline", "--store", store, "--out", str(tmp_path / "o")])
    assert result.exit_code == 0 and "2 tables and 0 figures from 34 runs" in result.stdout
    assert (tmp_path / "o" / "index.html").exists()


@pytest.mark.parametrize("arguments", [{"store": "nowhere"}, {"out": "a file"}])
def test_bad_folders_are_named(out: Path, tmp_path: Path, arguments: dict[str, str]) -> None:
    (tmp_path / "a file").write_text("")
    folders = {"store": out.parent / "store", "out": tmp_path / "o"} | {k: tmp_path / v for k, v in arguments.items()}
    with pytest.raises(LTGAError, match=f"^{next(iter(arguments))}: ") as error:
        write_report([EXPERIMENTS["depth"]], **folders)
    assert "\n" not in str(error.value)


@pytest.fixture(params=[1400, 390])
def page(request: pytest.FixtureRequest, chromium: Any, out: Path) -> Any:
    """The page at one width; at the end nothing may have gone to the console."""
    metrics = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.get_log("browser")
    chromium.get((out / "index.html").as_uri())
    yield chromium
    assert chromium.get_log("browser") == []
    assert chromium.execute_script("return window.hacked") is None


def column(page: Any, table: str, number: int) -> list[str]:
    rows = page.find_elements("css selector", f"#table-{table} tbody tr:not(.filtered)")
    return [row.find_elements("css selector", "th, td")[number].text.split("\n")[0] for row in rows]


def press(page: Any, element: Any) -> None:
    page.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element)
    element.click()


def test_sorting_both_ways_with_the_missing_last(page: Any) -> None:
    head = page.find_elements("css selector", "#table-headline thead button")[1]
    press(page, head)
    assert column(page, "headline", 0)[:3] == ["GCN", "GAT", "GATv2"]
    press(page, head)
    assert column(page, "headline", 0)[:3] == ["GATv2", "GAT", "GCN"]
    assert column(page, "headline", 1)[3:] == ["not run"] * 4
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    press(page, page.find_elements("css selector", "#table-headline thead button")[0])
    names = column(page, "headline", 0)
    assert names == sorted(names, key=str.lower)


def test_filtering(page: Any) -> None:
    box = page.find_element("css selector", "#table-headline-tests input")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    box.send_keys("LTGA-Edge texas")
    assert column(page, "headline-tests", 0) == ["texas"]
    assert page.find_element("css selector", "#table-headline-tests .shown").text == "1 of 14 rows"
    box.clear()
    box.send_keys(" ")
    assert len(column(page, "headline-tests", 0)) == 14


def test_the_runs_behind_a_number(page: Any, out: Path) -> None:
    press(page, page.find_element("css selector", "#table-headline button.runs"))
    dialog = page.find_element("css selector", "dialog[open]")
    rows = [
        [cell.text for cell in row.find_elements("css selector", "td")]
        for row in dialog.find_elements("css selector", "tbody tr")
    ]
    assert len(rows) == 10 and rows[0][:4] == ["1", "50.000", "texas", "gcn"]
    assert all((out.parent / "store" / f"{row[-1]}.json").exists() for row in rows)
    dialog.find_element("css selector", "form button").click()
    assert not page.find_elements("css selector", "dialog[open]")


def test_marks_and_what_was_not_run(page: Any) -> None:
    table = page.find_element("css selector", "#table-headline")
    assert len(table.find_elements("css selector", "thead .mark.stand-in")) == 2  # roman-words and gum-syntax
    assert table.find_element("css selector", "td .mark.partial").text == "2/10"

    def visible() -> list[str]:
        return [head.text for head in table.find_elements("css selector", "thead th") if head.is_displayed()]

    assert any(head.startswith("roman-empire") for head in visible())
    press(page, page.find_element("css selector", "#compact"))
    assert not any(head.startswith("roman-empire") for head in visible())
    assert any(head.startswith("gum-syntax") for head in visible())


def test_the_page_itself_never_scrolls_sideways(page: Any) -> None:
    script = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.execute_script(script)
    page.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.execute_script(script)


def test_light_and_dark(page: Any) -> None:
    def colour() -> Any:
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    before = colour()
    press(page, page.find_element("css selector", "#theme"))
    after = colour()
    assert before != after
    press(page, page.find_element("css selector", "#theme"))
    assert colour() == before
