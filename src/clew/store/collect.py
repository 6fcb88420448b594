"""Write rows that are few without Spark's own writer.

A job that writes Parquet costs Spark a tenth of a second and more on a local disk, however few the
rows: it makes folders, renames files and, without Hadoop's native library, starts a process for
every file to set its permissions. Few rows come to the driver as an Arrow table instead, and one
file is written from there.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from clew.store.draft import Draft, put_table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

AT = "_clew_at"
"""The hidden column with a row's number within its task."""
_IN_TASK = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of a task."""

_PLAIN = (
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.NumericType,
    T.StringType,
    T.TimestampNTZType,
    T.TimestampType,
)


def put_rows(rows: DataFrame, folder: Path, *, few: bool) -> None:
    """Compute rows into a folder, in place of what is there.

    Args:
        rows: The rows.
        folder: Where they go.
        few: They should be few. If they are too many for the driver, they are computed again.
    """
    table = _collected(rows) if few else None
    shutil.rmtree(folder, ignore_errors=True)
    if table is None:
        rows.write.mode("overwrite").parquet(str(folder))
    else:
        put_table(table, folder)


def compute(rows: DataFrame, folder: Path, most: int) -> Draft:
    """Compute rows once: into memory if there are at most so many, else into a folder.

    If there turn out to be more, they are computed again. So this is for rows that are made from
    data at rest. With `most=0` they go to the folder right away.
    """
    table = few_rows(rows, most) if most else None
    if table is None:
        put_rows(rows, folder, few=False)
    return Draft(folder, table)


def few_rows(rows: DataFrame, most: int) -> pa.Table | None:
    """Return rows as a table; None if there are more than so many.

    No task hands over more than that, which the number of a row within its task sees to. A limit
    would do it as well, but makes Spark's generated code for a scan and a join twice as slow.
    """
    table = _collected(numbered(rows).filter(f"{AT} <= {most}"))
    if table is None or table.num_rows > most:
        return None
    return table.drop_columns(AT)


def numbered(rows: DataFrame) -> DataFrame:
    """Add each row's number within its task, as a hidden column `AT`."""
    return rows.selectExpr("*", f"monotonically_increasing_id() & {_IN_TASK} AS {AT}")


def _collected(rows: DataFrame) -> pa.Table | None:
    """Return rows as a table; None if they are too many, or of types that Spark writes its way."""
    if not _is_plain(rows.schema):
        return None
    try:
        return rows.toArrow()
    except Exception as error:
        if "maxResultSize" not in str(error):
            raise
        return None


def _is_plain(kind: T.DataType, *, nullable: bool = False) -> bool:
    """Tell whether a type looks the same in Parquet, whoever writes it.

    A struct that may be null while its fields may not is left to Spark, too: PySpark 4.3 fails to
    make a table of it.
    """
    if isinstance(kind, T.StructType):
        if nullable and not all(field.nullable for field in kind.fields):
            return False
        return all(_is_plain(field.dataType, nullable=field.nullable) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType, nullable=kind.containsNull)
    if isinstance(kind, T.MapType):
        values = _is_plain(kind.valueType, nullable=kind.valueContainsNull)
        return values and _is_plain(kind.keyType)
    return isinstance(kind, _PLAIN)
