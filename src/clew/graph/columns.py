"""Names, references and hashes of columns.

clew's own columns are hidden: they begin with `_clew`, so a user's column may not. Everything that
builds a `Column` from a name goes through `named`, which quotes it, so names with dots, spaces and
backticks are safe everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError, ReservedNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

PREFIX = "_clew"
ID_A = "_clew_a"
ID_B = "_clew_b"

WATERMARK = "spark.watermarkDelayMs"
"""The mark in a column's metadata by which Spark knows the event time that a watermark is on."""

JSON = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""How values are written as JSON so that nothing is lost: microseconds and nulls stay."""

_JSON_TEXT = "map(" + ", ".join(f"'{part}'" for pair in JSON.items() for part in pair) + ")"

# The second half of an id is the same hash with another start, so that together they have 128 bits.
_SECOND_SEED = 0x5BD1E995

_REFERENCE = re.compile(r"_clew_ref_(\d+)_(\d+)")
_BARE_REFERENCE = re.compile(r"Column<'_clew_ref_(\d+)_(\d+)'>")

# Spark hashes these by value; everything else is hashed through its JSON text.
_HASHABLE = (
    T.NumericType,
    T.StringType,
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


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


def arranged(df: DataFrame, hidden: Sequence[str]) -> DataFrame:
    """Put the user's columns first and the hidden ones last, in the given order.

    Two user columns may share a name (after a join), so those are told apart by position.
    """
    names = df.columns
    users = [name for name in names if not is_hidden(name)]
    if len({name.lower() for name in users}) == len(users):
        return df.select(*[named(name) for name in [*users, *hidden]])
    unique = [name if is_hidden(name) else f"_clew_at_{i}" for i, name in enumerate(names)]
    by_position = [
        named(u).alias(n) for u, n in zip(unique, names, strict=True) if not is_hidden(n)
    ]
    return df.toDF(*unique).select(*by_position, *[named(name) for name in hidden])


def sole(names: Sequence[str], verb: str) -> None:
    """Refuse two columns of one name where a verb has to tell them apart.

    Raises:
        ColumnError: A name occurs twice.
    """
    twice = [name for name, count in Counter(n.lower() for n in names).items() if count > 1]
    if twice:
        msg = (
            f"`{verb}` sees two columns called `{twice[0]}`, so rows cannot be told apart by it."
            f'\n\nGive one of them another name first, e.g. `.alias("{twice[0]}_2")` on the '
            "expression or `.withColumnRenamed(...)` before the join."
        )
        raise ColumnError(msg)


def reference_name(node_id: int, position: int) -> str:
    """Name the hidden copy of a column that `frame["column"]` refers to."""
    return f"_clew_ref_{node_id}_{position}"


def bare_reference(column: Column) -> tuple[int, int] | None:
    """Read which frame and position a column made by `frame["column"]` stands for."""
    match = _BARE_REFERENCE.fullmatch(str(column))
    return (int(match[1]), int(match[2])) if match else None


def find_references(name: str) -> Iterator[tuple[str, int, int]]:
    """Find the references inside the name that Spark gave to an unnamed expression."""
    for match in _REFERENCE.finditer(name):
        yield match[0], int(match[1]), int(match[2])


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """Write references inside a text with other numbers for their frames."""
    return _REFERENCE.sub(lambda m: f"_clew_ref_{numbers.get(int(m[1]), '')}_{m[2]}", text)


def identify(values: Sequence[tuple[Column | str, T.DataType]]) -> tuple[Column, Column]:
    """Hash values to the two halves of a row id.

    Spark's hash skips nulls, which would make (null, 1) and (1, null) equal; so the hash of each
    value is joined by whether it is null.

    Values given as SQL make one expression: each call to Spark's `Column` is several messages to
    another process, and a query is built of very many of them.
    """
    texts = [(value, kind) for value, kind in values if isinstance(value, str)]
    if len(texts) == len(values):
        a, b = id_texts(texts)
        return F.expr(a), F.expr(b)
    columns: list[Column] = []
    for value, kind in values:
        if isinstance(value, str):
            columns += [F.expr(part) for part in _parts(value, kind)]
        else:
            columns += [value, value.isNull()]
    return F.xxhash64(F.lit(0), *columns), F.xxhash64(F.lit(_SECOND_SEED), *columns)


def id_texts(values: Sequence[tuple[str, T.DataType]]) -> tuple[str, str]:
    """Write the two halves of a row id as SQL."""
    parts = ", ".join(["", *[part for value, kind in values for part in _parts(value, kind)]])
    return f"xxhash64(0{parts})", f"xxhash64({_SECOND_SEED}{parts})"


def own_id(values: Sequence[tuple[Column | str, T.DataType]]) -> dict[str, Column]:
    """Compute a derived row's id from what it was derived from."""
    a, b = identify(values)
    return {ID_A: a, ID_B: b}


def ids_text(rows: Column) -> Column:
    """Write the ids of an array of annotations as one text, the same in any order."""

    def text(row: Column) -> Column:
        return F.concat_ws(":", row[ID_A].cast("string"), row[ID_B].cast("string"))

    return F.concat_ws("|", F.array_sort(F.transform(rows, text)))


def _parts(value: str, kind: T.DataType) -> list[str]:
    if isinstance(kind, _HASHABLE):
        return [value, f"isnull({value})"]
    if isinstance(kind, T.StructType):
        # Leaf by leaf: a window's struct is on the hot path, and text would be slow there.
        leaves = [
            part
            for field in kind.fields
            for part in _parts(f"({value}).{quote(field.name)}", field.dataType)
        ]
        return [f"isnull({value})", *leaves]
    return [as_text(value, kind), f"isnull({value})"]


def as_text(value: str, kind: T.DataType) -> str:
    """Write a value of any type as text that is equal for equal values."""
    if isinstance(kind, (T.ArrayType, T.MapType, T.VariantType)):
        entries = f"array_sort(map_entries({value}))" if isinstance(kind, T.MapType) else value
        return f"to_json(struct({entries} AS v), {_JSON_TEXT})"
    return f"CAST({value} AS STRING)"
