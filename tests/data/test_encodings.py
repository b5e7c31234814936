"""Text in another encoding than UTF-8: one line that says which it looks like, in every reader; or read as asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.graphs import write_collection, write_tables
from ltga.cli.plan import read_config
from ltga.data import Preparation, load_dataset
from ltga.data.graph_folder_sources import open_source
from ltga.data.graph_folder_write import write_graph_folder
from ltga.errors import LTGAError

FILES = {
    "g.edges": "source target\né b\nb c\nc é\n",
    "g.csv": "source,target\né,b\nb,c\nc,é\n",
    "g.gml": 'graph [ node [ id 0 name "é" ] node [ id 1 ] edge [ source 0 target 1 ] ]',
    "g.mtx": "%%MatrixMarket matrix coordinate pattern general\n% é\n2 2 1\n1 2\n",
}
WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")


def recode(folder: Path, encoding: str) -> Path:
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("a", "ä"), encoding=encoding)
    return folder


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("name", FILES)
def test_a_file_says_what_it_looks_like(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding=encoding)
    with pytest.raises(
        LTGAError, match=f"is not utf-8 text; it looks like {encoding}; .*iconv -f {encoding}"
    ) as caught:
        load_dataset(path, preparation=Preparation(predict="links"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", [*WIDE, "cp1252"])
@pytest.mark.parametrize("make", [write_tables, write_collection])
def test_tables_say_it_or_are_read_as_asked(make: object, encoding: str, tmp_path: Path) -> None:
    folder = recode(make(tmp_path / "mine"), encoding)  # type: ignore[operator]
    with pytest.raises(LTGAError, match=f"looks like {encoding};.*or say encoding={encoding}"):
        load_dataset(folder)
    names = Preparation(encoding=encoding, label="läbel", target="tärget", **_ids(folder))
    if make is write_tables:
        assert load_dataset(folder, preparation=names).class_names == ("b", "ä")


def _ids(folder: Path) -> dict[str, str]:
    return {} if (folder / "graphs.csv").exists() else {"id": "id"}


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_a_stream_of_tables_says_it(encoding: str, tmp_path: Path) -> None:
    folder = recode(write_tables(tmp_path / "mine"), encoding)
    with pytest.raises(LTGAError, match=f"is not utf-8 text; it looks like {encoding}"):
        write_graph_folder(open_source(str(folder)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp1252"])
def test_xml_and_settings(encoding: str, tmp_path: Path) -> None:
    settings = tmp_path / "s.toml"
    settings.write_text("seeds = 1 # é", encoding=encoding)
    with pytest.raises(LTGAError, match=f"--config: .* is not UTF-8 text; it looks like {encoding}"):
        read_config(settings)
    settings.write_text("seeds = 1", encoding="utf-8-sig")  # as some editors do
    assert read_config(settings) == {"seeds": 1}
    if encoding != "utf-16":  # which XML readers know
        graph = tmp_path / "g.graphml"
        graph.write_text('<graphml><graph edgedefault="directed"><node id="é"/></graph></graphml>', encoding=encoding)
        with pytest.raises(LTGAError, match=f"it looks like {encoding}"):
            load_dataset(graph)


def test_tables_in_two_encodings_are_one_fault_without_the_columns_that_nobody_can_read(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "mine")
    nodes = folder / "nodes.csv"
    nodes.write_text(nodes.read_text(), encoding="utf-16")
    with pytest.raises(
        LTGAError, match=r"edges\.csv: is not utf-16 text; it looks like utf-8; give all tables"
    ) as caught:
        load_dataset(folder, preparation=Preparation(encoding="utf-16"))
    assert "is missing" not in str(caught.value)
    nodes.write_bytes("id,l\xe4bel\na,b\n".encode("cp1252"))
    with pytest.raises(LTGAError, match=r"nodes\.csv: is not utf-8 text .*say encoding=cp1252") as caught:
        load_dataset(folder)
    assert "is missing" not in str(caught.value)


@pytest.mark.parametrize("content", [b"PK\x03\x04\x14\xa0 workbook", b"id,label\n\x85\0\0"])
def test_a_binary_file_is_called_one(content: bytes, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "mine")
    (folder / "nodes.csv").write_bytes(content)
    with pytest.raises(LTGAError, match="it is no text at all but a binary file; write the table as CSV"):
        load_dataset(folder)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "koi8-r", "ascii"])
@pytest.mark.parametrize("name", ["g.edges", "g.csv", "mine"])
def test_utf8_is_not_read_as_something_else(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "mine":
        recode(write_tables(path), "utf-8")
    else:
        path.write_text(FILES[name])
    with pytest.raises(LTGAError, match=f"is UTF-8 text, not {encoding}; leave encoding out, or say encoding=utf-8"):
        load_dataset(path, preparation=Preparation(predict="links", encoding=encoding))


def test_an_encoding_may_be_spelled_in_its_other_ways(tmp_path: Path) -> None:
    folder = recode(write_tables(tmp_path / "mine"), "utf-16")
    options = Preparation(encoding="utf16", label="läbel", target="tärget")
    assert load_dataset(folder, preparation=options).class_names == ("b", "ä")
