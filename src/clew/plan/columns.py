"""Names, references and hashes of columns.

clew's own columns are hidden: they begin with `_clew`, so a user's column may not. Everything that
builds a `Column` from a name goes through `named`, which quotes it, so names with dots, spaces and
backticks are safe everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from clew.exceptions import ColumnError, ReservedNameError
from clew.plan.equal import Part, fast_hash, parts_of, strong_hash
from clew.plan.secret import current_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as T

PREFIX = "_clew"
ID_A = "_clew_a"
ID_B = "_clew_b"

WATERMARK = "spark.watermarkDelayMs"
"""The mark in a column's metadata by which Spark knows the event time that a watermark is on."""

JSON = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""How values are written as JSON so that nothing is lost: microseconds and nulls stay."""

_REFERENCE = re.compile(r"_clew_ref_(\d+)_(\d+)")
_BARE_REFERENCE = re.compile(r"Column<'_clew_ref_(\d+)_(\d+)(?: AS \w+)?'>")
# `CAST(_clew_ref_1_2 AS STRING)` has a type behind it, and no name.
_CALLED = re.compile(
    r"(?<!CAST\()_clew_ref_\d+_\d+ AS (?=\w)"
    r"|_clew_ref_\d+_\d+ AS (?=\w)(?!(?:(?! AS )[A-Z0-9_ ])+(?:\([\d, ]+\))?\))"
)
_NAMELESS = re.compile(r"(?<!\w)(?:struct|arrays_zip)\((?:[^()]*, )?_clew_ref_\d+_\d+(?=[,)])")
_WORD = re.compile(r"\w+")
_ALL = re.compile(r"Column<'_clew_all_(\d+)'>")


def quote(name: str) -> str:
    """Write a name so that Spark reads it as one part, whatever it holds.

    Examples:
        >>> quote("engine temp. `C`")
        '`engine temp. ``C```'
    """
    return "`" + name.replace("`", "``") + "`"


def named(name: str) -> Column:
    """Refer to a column by its exact name."""
    return F.col(quote(name))


def is_hidden(name: str) -> bool:
    """Tell whether a column is one of clew's own."""
    return name.lower().startswith(PREFIX)


def refuse_reserved(names: Iterable[str]) -> None:
    """Refuse user columns that are called like clew's own.

    Raises:
        ReservedNameError: One of the names begins with `_clew`.
    """
    for name in names:
        if is_hidden(name):
            raise ReservedNameError(name)


def user_columns(df: DataFrame) -> list[str]:
    """List the columns of a frame that are the user's, in order."""
    return [name for name in df.columns if not is_hidden(name)]


def spelling(df: DataFrame) -> Callable[[str], str]:
    """Return what two names have in common if Spark takes them for one, which a setting decides."""
    is_exact = str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    return str if is_exact else str.lower


def arranged(df: DataFrame, hidden: Sequence[str]) -> DataFrame:
    """Put the user's columns first and the hidden ones last, in the given order.

    Two user columns may share a name (after a join), so those are told apart by position.
    """
    names = df.columns
    users = [name for name in names if not is_hidden(name)]
    if len(set(map(spelling(df), users))) == len(users):
        return df.select(*[named(name) for name in [*users, *hidden]])
    unique = [name if is_hidden(name) else f"_clew_at_{i}" for i, name in enumerate(names)]
    by_position = [
        named(u).alias(n) for u, n in zip(unique, names, strict=True) if not is_hidden(n)
    ]
    return df.toDF(*unique).select(*by_position, *[named(name) for name in hidden])


def sole(names: Sequence[str], verb: str, df: DataFrame) -> None:
    """Refuse two columns of one name where a verb has to tell them apart.

    Args:
        names: The columns.
        verb: The verb.
        df: A frame whose session says whether case counts.

    Raises:
        ColumnError: A name occurs twice.
    """
    twice = [name for name, count in Counter(map(spelling(df), names)).items() if count > 1]
    if twice:
        msg = (
            f"`{verb}` sees two columns called `{twice[0]}`, so rows cannot be told apart by it."
            f'\n\nGive one of them another name first, e.g. `.alias("{twice[0]}_2")` on the '
            "expression or `.withColumnRenamed(...)` before the join."
        )
        raise ColumnError(msg)


def refuse_lookalike_fields(schema: T.StructType, where: str) -> None:
    """Refuse what answers could not tell apart: fields of one name, and names that are empty.

    The store keeps whole rows as structs, and a field is found by its name, whatever its case.

    Args:
        schema: The columns.
        where: What they are the columns of.

    Raises:
        ColumnError: There is such a field or column.
    """
    for field in schema.fields:
        if not field.name:
            msg = (
                f"{where} has a column without a name, which nobody could ask for.\n\nGive it "
                'one, e.g. `.toDF(...)`; of a pivot: `.replace("", "none")` before it.'
            )
            raise ColumnError(msg)
        for kind in _structs_in(field.dataType):
            twice = [n for n, c in Counter(f.lower() for f in kind.names).items() if c > 1]
            if twice:
                msg = (
                    f"the column `{field.name}` of {where} holds two fields called `{twice[0]}`, "
                    "and what is kept of a row could not tell them apart.\n\nRename one, e.g. "
                    f'`.withColumn("{field.name}", F.col("{field.name}").cast("struct<...>"))`, '
                    "or drop the column."
                )
                raise ColumnError(msg)


def _structs_in(kind: T.DataType) -> Iterator[T.StructType]:
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType):
        yield kind
        for field in kind.fields:
            yield from _structs_in(field.dataType)
    for inside in ("elementType", "keyType", "valueType"):
        if hasattr(kind, inside):
            yield from _structs_in(getattr(kind, inside))


def reference_name(node_id: int, position: int) -> str:
    """Name the hidden copy of a column that `frame["column"]` refers to."""
    return f"_clew_ref_{node_id}_{position}"


def referring(node_id: int, position: int, field: T.StructField, name: str) -> Column:
    """Refer to a column of a frame as `frame["column"]` does, from later frames as well.

    Spark names results, fields of structs and keys of JSON after the columns in an expression, so
    the hidden copy is called what the user calls it. But a window over a column that was given a
    name loses its watermark: that column is called by the name of its copy, and `real_name` and
    `refuse_nameless` see to the rest.

    Raises:
        ColumnError: The copy could not have the name that was asked for.
    """
    copy = F.col(reference_name(node_id, position))
    if WATERMARK not in field.metadata and _WORD.fullmatch(name):
        return copy.alias(name)
    if name != field.name:
        msg = f"the column `{name}` is called `{field.name}`.\n\nTake it by that spelling."
        raise ColumnError(msg)
    return copy


def all_of(node_id: int) -> Column:
    """Refer to all columns of a frame as `frame["*"]` does; `frame_of_all` says of which."""
    return F.col(f"_clew_all_{node_id}")


def frame_of_all(column: Column | str) -> int | None:
    """Read which frame a column made by `frame["*"]` stands for."""
    match = None if isinstance(column, str) else _ALL.fullmatch(str(column))
    return int(match[1]) if match else None


@contextmanager
def at_hand() -> Iterator[None]:
    """Say in the user's words that a column taken from another frame is not there.

    Raises:
        ColumnError: Spark did not find the hidden copy of a column.
    """
    try:
        yield
    except AnalysisException as error:
        if "_clew_all_" in str(error):
            msg = (
                '`frame["*"]` stands for the columns of that frame in a `select` only, and not '
                'inside a function.\n\nName the columns, or count rows by `F.count("*")`.'
            )
            raise ColumnError(msg) from error
        if not _REFERENCE.search(str(error)):
            raise
        msg = (
            'a column that was taken as `frame["column"]` cannot be used here: an earlier step '
            "left it out, or groups by it under its name.\n\nTake it by name, "
            '`F.col("column")`, or from the frame whose verb this is.'
        )
        raise ColumnError(msg) from error


def bare_reference(column: Column) -> tuple[int, int] | None:
    """Read which frame and position a column made by `frame["column"]` stands for."""
    match = _BARE_REFERENCE.fullmatch(str(column))
    return (int(match[1]), int(match[2])) if match else None


def find_references(name: str) -> Iterator[tuple[str, int, int]]:
    """Find the references inside the name that Spark gave to an unnamed expression."""
    for match in _REFERENCE.finditer(name):
        yield match[0], int(match[1]), int(match[2])


def refuse_nameless(columns: Iterable[Column | str]) -> None:
    """Refuse a field of a struct that would be called by a hidden copy.

    Raises:
        ColumnError: A column whose copy could not have its name stands in a struct.
    """
    for column in columns:
        if not isinstance(column, str) and _NAMELESS.search(str(column)):
            msg = (
                'a field of a struct cannot be named after `frame["column"]` if the column has a '
                "watermark or a name that is no plain word.\n\nTake it by name, "
                '`F.struct(F.col("column"))`, or name it: `frame["column"].alias("column")`.'
            )
            raise ColumnError(msg)


def real_name(name: str, references: Mapping[str, str]) -> str:
    """Write the name that Spark gave to an expression as it would be without copies.

    Examples:
        >>> real_name("max(_clew_ref_1_2 AS speed)", {})
        'max(speed)'
        >>> real_name("(_clew_ref_1_2 + 1)", {"_clew_ref_1_2": "odd name"})
        '(odd name + 1)'
    """
    better = _CALLED.sub("", name)
    return _REFERENCE.sub(lambda m: references.get(m[0], m[0]), better)


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """Write references inside a text with other numbers for their frames."""
    return _REFERENCE.sub(lambda m: f"_clew_ref_{numbers.get(int(m[1]), '')}_{m[2]}", text)


def identify(
    values: Sequence[tuple[Column | str, T.DataType]], *, finer: bool = False
) -> tuple[Column, Column]:
    """Hash values to the two halves of a row id.

    Spark's hash skips nulls, which would make (null, 1) and (1, null) equal; so the hash of each
    value is joined by whether it is null. Both halves begin and end with the store's secret, so
    nobody who does not know it can look for values that agree. The first is quick, the second
    takes texts through SHA-256 and everything in the opposite order.

    Values given as SQL make one expression: each call to Spark's `Column` is several messages to
    another process, and a query is built of very many of them.

    Args:
        values: The values, and their types.
        finer: Equal values may differ; see `parts_of`.

    Raises:
        ColumnError: Spark alone can tell which values of a type are equal.
    """
    a, b = _halves(values, finer=finer)
    return _column(a), _column(b)


def _halves(
    values: Sequence[tuple[Column | str, T.DataType]], *, finer: bool
) -> tuple[Column | str, Column | str]:
    parts = [part for value, kind in values for part in parts_of(value, kind, finer=finer)]
    one, two, three, four = current_secret().words
    return fast_hash(parts, one, two), strong_hash(parts, three, four)


def _column(value: Column | str) -> Column:
    return F.expr(value) if isinstance(value, str) else value


def id_texts(values: Sequence[tuple[str, T.DataType]], *, finer: bool = False) -> tuple[str, str]:
    """Write the two halves of a row id as SQL."""
    a, b = _halves(values, finer=finer)
    return str(a), str(b)


def segment_hash(text: str) -> str:
    """Hash the name of a segment (a file's path, a topic and partition), as SQL."""
    _, _, before, behind = current_secret().words
    return str(strong_hash([Part(f"CAST({text} AS BINARY)", text)], before, behind))


def own_id(
    values: Sequence[tuple[Column | str, T.DataType]], *, finer: bool = False
) -> dict[str, Column]:
    """Compute a derived row's id from what it was derived from."""
    a, b = identify(values, finer=finer)
    return {ID_A: a, ID_B: b}


def ids_text(rows: Column) -> Column:
    """Write the ids of an array of annotations as one text, the same in any order."""

    def text(row: Column) -> Column:
        return F.concat_ws(":", row[ID_A].cast("string"), row[ID_B].cast("string"))

    return F.concat_ws("|", F.array_sort(F.transform(rows, text)))
