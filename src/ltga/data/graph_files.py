"""Files that other programs keep graphs in, as tables: GraphML, GEXF, GML, Matrix Market, and lists of edges."""

from __future__ import annotations

import io
import re
import warnings
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ltga.data.bounds import MAX_BYTES, in_a_line
from ltga.data.dataset_names import GRAPH_SUFFIXES, LISTS, XML
from ltga.data.graph_tables import Tables
from ltga.data.networkx_lines import has_dictionaries, split_dictionaries
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.separators import separator_in
from ltga.data.table_cells import text_of
from ltga.data.table_graph import read_folder
from ltga.data.text_files import check_encoding, encoding_hint, reads_as
from ltga.errors import DataError

TABLE_NAMES = ("edges.csv", "edges.parquet", "nodes.csv", "nodes.parquet")
# What the first row of a list of edges may be called, in pairs, if it is a header.
_HEADERS = {("source", "target"), ("from", "to"), ("src", "dst"), ("node1", "node2"), ("u", "v")}
_COMMENTS = ("#", "%", "//")
_BEGUN = "lines that begin with #, % or //:"
_BEFORE_TEXT = re.compile(r"\s*(#+|%+|//+)(\s|$)")


def is_table_source(path: Path) -> bool:
    """Whether a path leads to something that is prepared: tables, or what is turned into tables."""
    return path.is_dir() or path.name in TABLE_NAMES or path.suffix.lower() in GRAPH_SUFFIXES


def read_graph_file(path: str | Path, options: Preparation) -> Tables:
    """The tables in a folder, or in a file of another program."""
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    if path.is_dir() or path.name in TABLE_NAMES:
        return read_folder(path if path.is_dir() else path.parent, options)
    suffix = path.suffix.lower()
    if suffix not in GRAPH_SUFFIXES:
        raise DataError(f"{path}: not a known format; give a folder of tables, or {', '.join(GRAPH_SUFFIXES)}")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise DataError(f"{path}: has {size:,} bytes, more than the limit of {MAX_BYTES:,}; split the graph")
    origin = {"format": suffix[1:], "path": str(path.resolve())}
    about = {"name": path.stem, "where": str(path), "origin": origin}
    if suffix in LISTS:
        return _read_list(path, options, about)
    tables = {"node_table": f"{path} (nodes)", "edge_table": f"{path} (edges)"}
    if suffix not in XML:  # which says its encoding itself
        with path.open("rb") as stream:
            check_encoding(stream.read(4096), path, option=False)
    if suffix == ".mtx":
        return _read_matrix(path, options, {**about, **tables})
    if suffix in XML:
        _refuse_entities(path)
    return _read_by_networkx(path, suffix, options, {**about, **tables})


def _read_by_networkx(path: Path, suffix: str, options: Preparation, about: dict[str, Any]) -> Tables:
    import networkx

    from ltga.data.sources import from_networkx

    readers: dict[str, Callable[[Path], Any]] = {
        ".graphml": networkx.read_graphml,
        ".gexf": networkx.read_gexf,
        ".gml": lambda path: networkx.read_gml(path, label=None),
    }
    try:
        with warnings.catch_warnings():  # about files that leave out what has a default
            warnings.simplefilter("ignore")
            graph = readers[suffix](path)
    except Exception as error:  # these readers raise nearly anything about a damaged file
        ascii_only = "; GML is ASCII, other letters are written as in &#233;" if "ASCII" in str(error) else ""
        raise DataError(f"{path}: cannot be read as {suffix[1:]} ({in_a_line(error)}){ascii_only}") from None
    tables = from_networkx(graph, options, **about)
    return tables if suffix == ".graphml" else _without_display_names(tables, options)


def _without_display_names(tables: Tables, options: Preparation) -> Tables:
    """GEXF and GML call the text shown beside a node its label; that is no feature."""
    nodes = tables.nodes
    if nodes is None or "label" not in nodes or "label" in (options.id, options.label):
        return tables
    if len(text_of(nodes["label"]).unique()) < len(nodes):
        return tables
    tables.problems.add(tables.node_table, "column 'label' names nodes", 1, "left out (id=label to use it)", "note")
    return replace(tables, nodes=nodes.drop(columns="label"))


def _read_matrix(path: Path, options: Preparation, about: dict[str, Any]) -> Tables:
    import scipy.io

    from ltga.data.sources import as_tables

    try:
        rows, columns, entries, form, *_ = scipy.io.mminfo(path)
        if form != "coordinate" or entries > path.stat().st_size or max(rows, columns) > 1 << 31:
            raise DataError(f"{path}: is a matrix of {rows} x {columns} in {form} form; give a sparse adjacency")
        tables = as_tables(scipy.io.mmread(path), options)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path}: cannot be read as a Matrix Market file ({in_a_line(error)})") from None
    return Tables(tables.edges, tables.nodes, convention=tables.convention, **about)


def _refuse_entities(path: Path) -> None:
    """Raise about a file that defines entities, before anybody expands them."""

    def refuse(*_: Any) -> None:
        raise DataError(f"{path}: defines XML entities, which can fill any memory; remove its <!DOCTYPE ...>")

    parser = xml.parsers.expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse  # type: ignore[assignment]
    try:
        with path.open("rb") as stream:
            parser.ParseFile(stream)
    except (xml.parsers.expat.ExpatError, ValueError, LookupError) as error:
        content = path.read_bytes()
        looks = (
            ""
            if reads_as(content, "utf-8")
            else f"; if its first line names no encoding, {encoding_hint(content, path, False)}"
        )
        raise DataError(f"{path}: damaged, or not XML ({in_a_line(error)}){looks}") from None


def _read_list(path: Path, options: Preparation, about: dict[str, Any]) -> Tables:
    """A list of edges: source, target and attributes, with or without a header."""
    problems = Problems()
    text = _text(path, options.encoding).removeprefix("\ufeff")
    start, told = separator_in(text)
    lines = [line for line in text[start:].splitlines() if line.strip()]
    kept, separator = _without_comments(lines, told if start else None, path, options, problems)
    details: list[dict[str, Any]] = []
    if has_dictionaries(kept[0]):
        kept, details = split_dictionaries(kept, path, problems)
        separator = _separator(kept)
    rows = _cells(kept, separator, path)
    width = len(rows[0])
    if width < 2:
        raise DataError(f"{path}: row 1: {width} field; a line has at least a source and a target")
    first = [cell.strip() for cell in rows[0]]
    # A line with a dictionary is an edge, whatever its nodes are called.
    header = _is_header(first, options) and not details
    names = [options.source, options.target, *_attribute_names(rows, width, options)]
    if header:
        named = {options.source, options.target} <= set(first)
        names, rows = first if named else [options.source, options.target, *first[2:]], rows[1:]
    else:
        problems.add(str(path), f"has no header; the first row joins {first[0][:30]!r} and {first[1][:30]!r}", 1,
                     "its columns are taken as " + ", ".join(names), "note")  # fmt: skip
    odd = [at for at, row in enumerate(rows) if len(row) != len(names)]
    if odd:
        problems.add(str(path), f"{len(rows[odd[0]])} fields instead of {len(names)}", odd, "mend these rows", "error")
        rows = [(row + [""] * len(names))[: len(names)] for row in rows]
    edges = pd.DataFrame(rows, columns=pd.Index(names, dtype=object), dtype=object)
    for name in dict.fromkeys(name for row in details for name in row):
        cells = pd.Series([row.get(name) for row in details], dtype=object).infer_objects()
        edges[f"{name} (attribute)" if name in names else name] = cells
    return Tables(edges, None, edge_table=str(path), node_table=str(path), problems=problems, **about)


def _without_comments(
    lines: list[str], separator: str | None, path: Path, options: Preparation, problems: Problems
) -> tuple[list[str], str]:
    """The lines that are edges, or name their columns, and the sign between their fields.

    A sign such as # begins a comment or a name: "#python,bob" is an edge where others have as many fields. A blank
    behind it makes a comment, as in "# FromNodeId ToNodeId"; so does a place above all other lines, unless lines below
    show that nodes are called so.
    """
    marked = [line.lstrip().startswith(_COMMENTS) for line in lines]
    plain = [line for line, odd in zip(lines, marked) if not odd]
    only_marked = not plain and path.suffix.lower() in (".csv", ".tsv")
    others = lines if only_marked else plain
    nothing = DataError(f"{path}: has no edges; give a line for each, source and target")
    if not others:
        raise nothing
    separator = separator or _separator(others)
    dictionaries = has_dictionaries(others[0])
    width = _width(others[0], separator, path)

    def may_be_edge(line: str) -> bool:
        alike = line.rstrip().endswith("}") if dictionaries else 0 < width == _width(line, separator, path)
        return alike and _BEFORE_TEXT.match(line) is None

    begins = 0 if only_marked else marked.index(False)
    edges = [odd and may_be_edge(line) for line, odd in zip(lines, marked)]
    headed = _is_header(_fields(others[0], separator), options)
    called_so = dictionaries or only_marked or (not headed and any(edges[begins:]))
    kept: list[str] = []
    named = left_out = 0
    for at, line in enumerate(lines):
        if marked[at]:
            header = at < begins and _is_header(_fields(line.lstrip("#%/ \t"), separator), options)
            if header or not edges[at] or (at < begins and not called_so):
                left_out += at > begins or (edges[at] and not header and not headed)
                continue
            named += 1
        kept.append(line)
    if not kept:
        raise nothing
    if named:
        action = "taken as edges, having as many fields as others; if they are comments, delete them"
        problems.add(str(path), f"{_BEGUN} {named:,}", named, action, "note")
    if left_out:
        problems.add(str(path), f"{_BEGUN} {left_out:,} without edges", left_out, "left out as comments", "note")
    return kept, separator


def _fields(line: str, separator: str) -> list[str]:
    return [field.strip(' "') for field in line.split(None if separator == " " else separator)]


def _width(line: str, separator: str, path: Path) -> int:
    """How many fields a line has; none if it cannot be divided."""
    try:
        return len(_cells([line], separator, path)[0])
    except DataError:
        return 0


def _separator(lines: list[str]) -> str:
    """The sign between fields, by the first line; a comma between digits is a decimal one if semicolons divide all."""
    found = next((sign for sign in ("\t", ",", ";") if sign in lines[0]), " ")
    decimal = found == "," and re.fullmatch(r"[^,]*;[-+]?[0-9]+,[0-9]+(;.*)?", lines[0].strip())
    counts = {line.count(";") for line in lines} if decimal else {0}
    return ";" if len(counts) == 1 and min(counts) > 1 else found


def _is_header(fields: list[str], options: Preparation) -> bool:
    usual = (options.source, options.target) == ("source", "target")
    return {options.source, options.target} <= set(fields) or (
        usual and tuple(field.lower() for field in fields[:2]) in _HEADERS
    )


def _attribute_names(rows: list[list[str]], width: int, options: Preparation) -> list[str]:
    """The third column is a weight, further ones have numbers."""
    return [options.weight, *(f"attribute {at}" for at in range(2, width - 1))][: width - 2]


def _cells(lines: list[str], separator: str, path: Path) -> list[list[str]]:
    import csv

    if separator == " ":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as a list of edges ({in_a_line(error)})") from None


def _text(path: Path, encoding: str) -> str:
    try:
        content = path.read_bytes()
        check_encoding(content, path, encoding)
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: is not {error.encoding} text (byte {error.object[error.start]:#04x} at {error.start:,}); "
            f"{encoding_hint(content, path)}"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
