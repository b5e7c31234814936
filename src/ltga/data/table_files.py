"""A CSV or Parquet file as a data frame of numbers and text, and nothing else."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ltga.data.bounds import MAX_BYTES, in_a_line
from ltga.errors import DataError

SUFFIXES = (".csv", ".parquet")
# Parquet can write a repeated value a billion times in a few bytes; rows that differ take about one each.
_ROWS_PER_BYTE = 1000
_PANDAS_INDEX = "__index_level_"


def read_frame(path: Path) -> pd.DataFrame:
    """The table in a file. Columns keep their order; whole numbers stay whole beside empty cells."""
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    # pyarrow and the standard library differ in what they raise about damage; all of it means the same here.
    except (csv.Error, pa.ArrowException, OSError, ValueError, TypeError, KeyError, RuntimeError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as a {path.suffix[1:]} table ({in_a_line(error)})") from None


def _read_csv(path: Path) -> pd.DataFrame:
    """All fields as text; not pandas' own reader, which drops surplus fields and fills up short rows."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True, skipinitialspace=True)
        header = [column.strip() for column in next(reader, [])]
        rows = [row for row in reader if row]
    for at, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {at}: {len(row)} fields, but the header names {len(header)} columns")
    return pd.DataFrame(rows, columns=pd.Index(header, dtype=object), dtype=object)


def _read_parquet(path: Path) -> pd.DataFrame:
    """Columns by their Parquet types; what pandas noted about itself in the file is not needed, so not believed."""
    with pq.ParquetFile(path) as file:
        _check_size(file.metadata, path)
        for field in file.schema_arrow:
            _check_type(field, path)
        table = file.read().replace_schema_metadata(None)
    table = table.select([at for at, name in enumerate(table.column_names) if not name.startswith(_PANDAS_INDEX)])
    frame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
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
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    )  # fmt: skip
    if not any(test(kind) for test in tests):
        raise DataError(
            f"{path}: column {in_a_line(field.name, 40)!r} holds {in_a_line(kind, 60)}; give one number or text in "
            "each cell (a column for each number of a list, dates as numbers)"
        )
