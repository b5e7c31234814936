"""A CSV or Parquet file as a data frame of numbers, text and dates, and nothing else."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ltga.data.bounds import MAX_BYTES, in_a_line
from ltga.data.problems import Problems
from ltga.data.separators import separator_in
from ltga.data.table_cells import text_of
from ltga.data.text_files import check_encoding, encoding_hint, is_wide, reads_as
from ltga.errors import DataError

SUFFIXES = (".csv", ".parquet")
# Parquet can write a repeated value a billion times in a few bytes; rows that differ take about one each.
_ROWS_PER_BYTE = 1000
_LONGEST_HEADER = 1 << 20
_PANDAS_INDEX = "__index_level_"


def read_frame(
    path: Path, encoding: str = "utf-8", problems: Problems | None = None, option: bool = True
) -> pd.DataFrame:
    """The table in a file. Columns keep their order; whole numbers stay whole beside empty cells.

    Rows of a CSV file that have too many or too few fields, or are no text, are added to `problems` if that is given,
    so that the rest can be looked at, and raised otherwise. `option`: whether whoever asks can say another encoding.
    """
    found = Problems() if problems is None else problems
    try:
        frame = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, encoding, found, option)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    # pyarrow and the standard library differ in what they raise about damage; all of it means the same here.
    except (csv.Error, pa.ArrowException, OSError, ValueError, TypeError, KeyError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as a {path.suffix[1:]} table ({in_a_line(error)})") from None
    if problems is None:
        found.refuse(str(path))
    return frame


def _read_csv(path: Path, encoding: str, problems: Problems, option: bool) -> pd.DataFrame:
    """All fields as text; not pandas' own reader, which drops surplus fields and fills up short rows."""
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    check_encoding(content, path, encoding, option)
    if is_wide(encoding):
        text = _decoded(content, encoding, str(path), problems, option).removeprefix("\ufeff")
        start, delimiter = separator_in(text)
        return _any_csv(text[start:], delimiter or ",", str(path), problems)
    start, delimiter = separator_in(content[:_LONGEST_HEADER].decode("latin-1"))  # in which a byte is a letter
    content, delimiter = content[start:], delimiter or ","
    fast = _plain_csv(content, delimiter) if encoding.lower() in ("utf-8", "utf8") else None
    if fast is not None:
        return _without_nameless_ends(fast, str(path), problems)
    return _any_csv(_decoded(content, encoding, str(path), problems, option), delimiter, str(path), problems)


def _plain_csv(content: bytes, delimiter: str) -> pd.DataFrame | None:
    """A file without quotes and faults, quickly; `None` for any other."""
    line = content[:_LONGEST_HEADER].splitlines()[:1]
    if b'"' in content or not line or len(line[0]) == _LONGEST_HEADER or len(content) == len(line[0]):
        return None
    try:
        header = [column.strip() for column in line[0].decode().split(delimiter)]
        numbered = [str(at) for at in range(len(header))]
        table = pyarrow.csv.read_csv(
            io.BytesIO(content),
            pyarrow.csv.ReadOptions(use_threads=False, column_names=numbered, skip_rows=1, block_size=1 << 24),
            pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(numbered, pa.large_string()), null_values=[]),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if len(header) == 1 and pc.any(pc.equal(table.column(0), "")).as_py():
        return None  # an empty line, or an empty cell?
    columns = {at: pd.array(column, dtype=pd.StringDtype("pyarrow")) for at, column in enumerate(table.columns)}
    return pd.DataFrame(columns).set_axis(pd.Index(header, dtype=object), axis=1)


def _any_csv(text: str, delimiter: str, where: str, problems: Problems) -> pd.DataFrame:
    """Any file, row by row."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True, delimiter=delimiter)
    header = [column.strip() for column in next(reader, [])]
    rows = [row for row in reader if row]
    _mend_blank_ends(rows, header, where, problems)
    odd = [at for at, row in enumerate(rows) if len(row) != len(header)]
    if odd:
        what = f"{len(rows[odd[0]])} fields, but the header names {len(header)} columns"
        problems.add(where, what, odd, "give every row as many, with quotes around text that has commas", "error")
        for at in odd:
            rows[at] = (rows[at] + [""] * len(header))[: len(header)]
    frame = pd.DataFrame(rows, columns=pd.Index(header, dtype=object), dtype=object)
    return _without_nameless_ends(frame, where, problems)


def _mend_blank_ends(rows: list[list[str]], header: list[str], where: str, problems: Problems) -> None:
    """Cut what is blank beyond the last column, and fill up rows that lack columns without a name, or have no cell."""
    width, cut = len(header), []
    named = next((at for at in range(width, 0, -1) if header[at - 1]), 0)
    for at, row in enumerate(rows):
        if len(row) > width and not any(cell.strip() for cell in row[width:]):
            rows[at] = row[:width]
            cut.append(at)
        elif named <= len(row) < width or (len(row) < width and not any(cell.strip() for cell in row)):
            rows[at] = row + [""] * (width - len(row))
    problems.add(where, "has blank fields after the last column", cut, "left out", "note")


def _without_nameless_ends(frame: pd.DataFrame, where: str, problems: Problems) -> pd.DataFrame:
    """A table without columns at its end that have neither a name nor a cell, as spreadsheets leave them."""
    width = len(frame.columns)
    while width and not frame.columns[width - 1] and pc.all(pc.equal(text_of(frame.iloc[:, width - 1]), "")).as_py():
        width -= 1
    if width == len(frame.columns) or not width:
        return frame
    count = len(frame.columns) - width
    problems.add(where, "columns at the end have neither a name nor a cell", count, "left out", "note")
    return frame.iloc[:, :width]


def _decoded(content: bytes, encoding: str, where: str, problems: Problems, option: bool) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        lines = content.splitlines()
        odd = [at - 1 for at, line in enumerate(lines) if not reads_as(line, encoding)]
        what = f"is not {error.encoding} text (byte {content[error.start]:#04x})"
        action = encoding_hint(content, where, option)
        if not reads_as(content[:_LONGEST_HEADER].splitlines()[0], encoding):
            raise DataError(f"{where}: {what}; {action}") from None  # without its header nothing else can be said
        problems.add(where, what, [at for at in odd if at >= 0] or 1, action, "error")
        return content.decode(encoding, "replace")


def _read_parquet(path: Path) -> pd.DataFrame:
    """Columns by their Parquet types; what pandas noted about itself in the file is not needed, so not believed."""
    with pq.ParquetFile(path) as file:
        _check_size(file.metadata, path)
        for field in file.schema_arrow:
            _check_type(field, path)
        table = file.read().replace_schema_metadata(None)
    table = table.select([at for at, name in enumerate(table.column_names) if not name.startswith(_PANDAS_INDEX)])
    frame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True, date_as_object=False)
    for at, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            frame.isetitem(at, frame.iloc[:, at].astype(object))
    return frame


def _check_size(metadata: pq.FileMetaData, path: Path) -> None:
    stored = path.stat().st_size
    if metadata.num_rows < 0 or metadata.num_rows > _ROWS_PER_BYTE * stored:
        raise DataError(f"{path}: announces {metadata.num_rows:,} rows in {stored:,} bytes; check how it was made")
    needed = max(
        metadata.num_rows * metadata.num_columns * 8,
        sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)),
    )
    if needed > MAX_BYTES:
        raise DataError(f"{path}: unpacks to {needed:,} bytes, more than the limit of {MAX_BYTES:,}; split the graph")


def _check_type(field: pa.Field, path: Path) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null,
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_timestamp, pa.types.is_date,
    )  # fmt: skip
    if not any(test(kind) for test in tests):
        raise DataError(
            f"{path}: column {in_a_line(field.name, 40)!r} holds {in_a_line(kind, 60)}; give one number or text in "
            "each cell (a column for each number of a list)"
        )
