"""Spark's types with hostile values, and one text for each class of values that Spark finds equal.

The text is written beside clew's own, in another way: which texts of the pool a collation takes for
equal is asked of Spark's `dense_rank`, not known from a rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import types as T

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

TEXTS = (
    *("", " ", "a", "A", "a ", "á", "a\u0301", "Á", "ß", "ss", "SS", "ς", "\u03c3", "Σ", "İ"),
    *("i\u0307", "\u0131", "i", "I", "ﬁ", "fi", "null", "n;", "1", "01", "-0.0", "😀", "\uffff"),
    *("1:a", "K", "\u212a"),
)
_INSTANTS = (
    "2024-03-31T00:30:00Z",  # before Berlin's clock goes forward
    "2024-03-31T01:30:00Z",
    "2024-10-27T00:30:00.000001Z",  # half past two in Berlin, twice
    "2024-10-27T01:30:00.000001Z",
    "2024-11-03T03:31:00Z",  # one minute past one in St John's, twice
    "2024-11-03T04:31:00Z",
    "2024-04-06T14:45:00Z",  # Lord Howe goes back by half an hour
    "2024-04-06T15:15:00Z",
    "2023-12-31T23:59:59.999999Z",
)
_LOCAL = (
    *("2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.1"),
    *("2024-03-31 02:30:00", "2024-10-27 02:30:00", "9999-12-31 23:59:59.999999"),
)


def _quoted(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"'{text}'" for text in texts)


def _ntz(text: str) -> str:
    return f"timestamp_ntz'{text}'"


@dataclass(frozen=True)
class Kind:
    """A column of the sources: its name, its type and what it may hold, as SQL."""

    name: str
    ddl: str
    pool: tuple[str, ...]
    compared: bool = True
    ordered: bool = True

    def value(self, text: str) -> str:
        return f"CAST({text} AS {self.ddl})"


_DOUBLES = ("-0D", "0D", "double('NaN')", "double('Infinity')", "double('-Infinity')", "4.9E-324D")
KINDS = (
    Kind("byte", "TINYINT", ("0", "1", "-128", "127")),
    Kind("short", "SMALLINT", ("0", "1", "-32768")),
    Kind("int", "INT", ("0", "1", "2", "-2147483648")),
    Kind("long", "BIGINT", ("0", "1", "2", "9223372036854775807")),
    Kind("float", "FLOAT", ("-0F", "0F", "float('NaN')", "1F", "float('Infinity')", "0.1F")),
    Kind("double", "DOUBLE", (*_DOUBLES, "1D", "0.1D", "9007199254740993D")),
    Kind("money", "DECIMAL(10, 2)", ("0", "0.10", "-0.1", "12345678.99")),
    Kind("wide", "DECIMAL(38, 10)", ("0", "1", "1.0000000001", f"{'9' * 28}.9999999999BD")),
    Kind("flag", "BOOLEAN", ("true", "false")),
    Kind("text", "STRING", _quoted(TEXTS)),
    Kind("lcase", "STRING COLLATE UTF8_LCASE", _quoted(TEXTS)),
    Kind("rtrim", "STRING COLLATE UTF8_BINARY_RTRIM", _quoted(TEXTS)),
    Kind("lrtrim", "STRING COLLATE UTF8_LCASE_RTRIM", _quoted(TEXTS)),
    Kind("unicode", "STRING COLLATE UNICODE", _quoted(TEXTS)),
    Kind("unicode_ci", "STRING COLLATE UNICODE_CI", _quoted(TEXTS)),
    Kind("bytes", "BINARY", ("x''", "x'00'", "x'0000'", "x'61'", "x'ff'")),
    Kind("day", "DATE", tuple(f"date'{d}'" for d in ("0001-01-01", "2024-03-31", "9999-12-31"))),
    Kind("at", "TIMESTAMP", tuple(f"timestamp'{each}'" for each in _INSTANTS)),
    Kind("clock", "TIMESTAMP_NTZ", tuple(map(_ntz, _LOCAL))),
    Kind(
        "span",
        "INTERVAL DAY TO SECOND",
        ("interval '1' day", "interval '24' hour", "interval '-0.000001' second"),
    ),
    Kind("hour", "TIME(6)", ("time'00:00:00'", "time'00:00:00.000001'", "time'23:59:59.999999'")),
    Kind("months", "INTERVAL YEAR TO MONTH", ("interval '1' year", "interval '12' month")),
    Kind(
        "doubles",
        "ARRAY<DOUBLE>",
        ("array()", "array(0D)", "array(-0D)", "array(double('NaN'), NULL)", "array(0D, 0D)"),
    ),
    Kind("words", "ARRAY<STRING>", ("array()", "array('a', 'b')", "array('a;1:b')", "array('')")),
    Kind(
        "names",
        "ARRAY<STRING COLLATE UTF8_LCASE>",
        ("array('a', 'Σ')", "array('A', 'ς')", "array('a ')", "array(NULL)"),
    ),
    Kind(
        "clocks",
        "ARRAY<TIMESTAMP_NTZ>",
        ("array()", *(f"array({_ntz(text)})" for text in _LOCAL[:4])),
    ),
    Kind("times", "ARRAY<TIMESTAMP>", tuple(f"array(timestamp'{t}')" for t in _INSTANTS[1:4])),
    Kind(
        "pairs",
        "MAP<STRING, INT>",
        ("map()", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", "map('a', NULL)"),
        ordered=False,
    ),
    Kind(
        "maps",
        "ARRAY<MAP<INT, DOUBLE>>",
        ("array(map(1, 0D, 2, 1D))", "array(map(2, 1D, 1, -0D))", "array(map())", "array(NULL)"),
        ordered=False,
    ),
    Kind(
        "s",
        "STRUCT<a: DOUBLE, b: STRING COLLATE UTF8_LCASE>",
        (
            *("named_struct('a', -0D, 'b', 'A')", "named_struct('a', 0D, 'b', 'a')"),
            *("named_struct('a', double(NULL), 'b', NULL)", "named_struct('a', 1D, 'b', '')"),
        ),
    ),
    Kind(
        "deep",
        "STRUCT<a: ARRAY<STRUCT<t: TIMESTAMP_NTZ, d: DOUBLE>>, b: STRUCT<c: STRING, e: DATE>>",
        tuple(
            f"named_struct('a', array(named_struct('t', {t}, 'd', {d})), 'b', {b})"
            for t, d, b in (
                (_ntz(_LOCAL[0]), "0D", "named_struct('c', 'a', 'e', date'2024-01-01')"),
                (_ntz(_LOCAL[1]), "-0D", "named_struct('c', 'a', 'e', date'2024-01-01')"),
                (_ntz(_LOCAL[0]), "-0D", "named_struct('c', 'a', 'e', date'2024-01-01')"),
                (_ntz(_LOCAL[0]), "0D", "NULL"),
                (_ntz(_LOCAL[0]), "0D", "named_struct('c', NULL, 'e', NULL)"),
            )
        ),
    ),
    Kind(
        "free",
        "VARIANT",
        ("parse_json('1')", "parse_json('{\"a\": [1, null]}')", "parse_json('null')"),
        compared=False,
        ordered=False,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def source(
    spark: SparkSession,
    rng: random.Random,
    first: int,
    rows: int,
    kinds: Sequence[Kind] = KINDS,
) -> DataFrame:
    """Make a source with columns of these types, and few values of each so that they meet."""
    columns: list[list[str]] = [[str(first + i) for i in range(rows)]]
    for kind in kinds:
        few = rng.sample(kind.pool, min(len(kind.pool), rng.choice((2, 3, 4))))
        columns.append([kind.value(rng.choice([*few, *few, "NULL"])) for _ in range(rows)])
    lines = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    names = ", ".join(kind.name for kind in kinds)
    return spark.sql(f"SELECT * FROM VALUES {lines} AS t(rid, {names})").selectExpr(
        "CAST(rid AS BIGINT) AS rid", *[kind.name for kind in kinds]
    )


@dataclass
class Spelling:
    """Write rows as text, equal where Spark finds them equal, or (`strict`) only if they are same.

    Attributes:
        classes: For each collation, the number of the class that a text of the pool is in.
    """

    classes: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def ask(cls, spark: SparkSession) -> Spelling:
        """Ask Spark which texts its collations take for equal."""
        out = cls()
        texts = spark.createDataFrame([(text,) for text in TEXTS], "t string")
        for kind in KINDS:
            if " COLLATE " in kind.ddl and kind.ddl.startswith("STRING"):
                name = kind.ddl.rsplit(" ", 1)[1]
                rank = f"dense_rank() OVER (ORDER BY collate(t, '{name}'))"
                out.classes[name] = {
                    row[0]: row[1] for row in texts.selectExpr("t", rank).collect()
                }
        return out

    def row(self, fields: Sequence[T.StructField], *, strict: bool) -> str:
        """Write the columns of a row as one text, as SQL."""
        if not fields:
            return "''"
        texts = [self._text(_quote(f.name), f.dataType, strict) for f in fields]
        return f"concat_ws('|', {', '.join(texts)})"

    def _text(self, value: str, kind: T.DataType, strict: bool, depth: int = 0) -> str:
        return f"coalesce({self._known(value, kind, strict, depth)}, '~')"

    def _known(self, value: str, kind: T.DataType, strict: bool, depth: int) -> str:
        if isinstance(kind, T.StringType):
            return self._string(value, kind, strict)
        if isinstance(kind, (T.FloatType, T.DoubleType)) and not strict:
            return f"IF({value} = 0, '0.0', CAST({value} AS STRING))"
        if isinstance(kind, T.TimestampType):
            return f"CAST(unix_micros({value}) AS STRING)"
        if isinstance(kind, T.DateType):
            return f"CAST(unix_date({value}) AS STRING)"
        if isinstance(kind, T.BinaryType):
            return f"hex({value})"
        if isinstance(kind, T.VariantType):
            return f"to_json({value})"
        if isinstance(kind, T.ArrayType):
            x = f"x{depth}"
            one = self._text(x, kind.elementType, strict, depth + 1)
            joined = f"array_join(transform({value}, {x} -> {one}), ',')"
            # No element and an empty one look alike.
            return f"concat('[', size({value}), ':', {joined}, ']')"
        if isinstance(kind, T.MapType):
            x = f"x{depth}"
            key = self._text(f"{x}.key", kind.keyType, strict, depth + 1)
            one = self._text(f"{x}.value", kind.valueType, strict, depth + 1)
            entries = f"transform(map_entries({value}), {x} -> concat({key}, '=', {one}))"
            return f"concat('<', array_join(array_sort({entries}), ','), '>')"
        if isinstance(kind, T.StructType):
            texts = [
                self._text(f"{value}.{_quote(f.name)}", f.dataType, strict, depth)
                for f in kind.fields
            ]
            whole = f"concat('(', concat_ws(',', {', '.join(texts)}), ')')"
            return f"IF({value} IS NULL, NULL, {whole})"
        return f"CAST({value} AS STRING)"

    def _string(self, value: str, kind: T.StringType, strict: bool) -> str:
        plain = f"collate({value}, 'UTF8_BINARY')"
        known = self.classes.get(kind.collation)
        if strict or known is None:
            return plain
        pairs = ", ".join(f"'{text}', '{number}'" for text, number in known.items())
        return f"coalesce(try_element_at(map({pairs}), {plain}), {plain})"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
