"""Conditions that a stranger could send: cuttings of SQL, odd letters, depth, sound ones changed.

Each text must become a tree of our own kinds of node, or a `QueryError`. A tree that comes out must
be small, encodable and free of hidden columns; and when columns are built of it, text goes to Spark
as a quoted name, as a literal or as a pattern, and in no other way. Spark itself is not started:
stand-ins note what it would be handed.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from clew.exceptions import QueryError
from clew.plan import build, condition
from clew.plan.columns import quote
from clew.plan.condition import parse_condition
from fuzz.fenced import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 2.0
_KINDS = (
    condition.ColumnPath,
    condition.Constant,
    condition.Compare,
    condition.Arithmetic,
    condition.Negative,
    condition.Junction,
    condition.Not,
    condition.OneOf,
    condition.Between,
    condition.Like,
    condition.IsNull,
)
_PIECES = [
    *("n", "place", "`a b`", "`x``y`", "window.start", "a.b.c.d", "_clew_a", "`_CLEW_a`", "é", "Ω"),
    *("1", "0", "1.5", "1e3", "1e999", "9" * 38, "9" * 39, "9223372036854775808", "1d", "0x10"),
    *("''", "'it''s'", "'a\\'", "'%'", "'\x00'", "'\ud800'", "'\u202e'", '"x"', "'touch /tmp/x'"),
    *("=", "==", "!=", "<>", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "(", ")", ","),
    *(
        ".",
        "and",
        "or",
        "not",
        "in",
        "between",
        "like",
        "is",
        "null",
        "true",
        "false",
        "AND",
        "nOt",
    ),
    *("select", "from", "reduce", "map", "using", "transform", "java_method", "reflect", "exists"),
    *("cast", "as", "case", "when", "end", "interval", "lambda", "->", "::", ";", "--", "/*", "*/"),
    *(
        "{{",
        "${x}",
        ":x",
        "?",
        "@",
        "#",
        "\\",
        "\n",
        "\t",
        "\r",
        "\x00",
        "\u00a0",
        "\u2028",
        "\ufeff",
    ),
]
_SOUND = [
    "n >= 4 and place = 'north'",
    "not (n in (1, 2, 3) or place like 'n%') and n between 2 and 4",
    "window.start > '2026-01-01 00:00:03' and `a b` is not null",
    "(n + 2) * 3 - 1 = 8 and -n < 3.5 and place <=> null",
    "n in (reduce 1 using 'touch x' as y)",
]


def run(seconds: float, seed: int) -> int:
    """Try texts for so long, and return how many.

    Raises:
        AssertionError: One was taken that should not be, or was not refused as it should be.
    """
    rng = random.Random(seed)
    tried = 0
    until = time.monotonic() + seconds
    spark = _Spark()
    with fenced(1 << 30), mock.patch.multiple(build, F=spark.functions, named=spark.named):
        while time.monotonic() < until:
            text = _text(rng)
            try:
                _try(text, spark)
            except BaseException as error:
                msg = (
                    f"seed {seed}, input {tried}: {type(error).__name__}: {error}\n{text[:2_000]!r}"
                )
                raise AssertionError(msg) from error
            tried += 1
    return tried


def _try(text: str, spark: _Spark) -> None:
    began = time.thread_time()
    try:
        tree = parse_condition(text).tree
    except QueryError as error:
        str(error).encode()
    else:
        nodes = list(_nodes(tree))
        assert len(nodes) <= 20 * condition.MAX_NODES, "the tree is too large"
        for node in nodes:
            _check(node)
        spark.handed.clear()
        build.build_column(tree)
        assert all(each in spark.allowed for each, _ in spark.handed)
        for _, value in spark.handed:
            assert (
                value in text or value.replace("`", "``") in text or f"{value}" in _unfolded(text)
            )
    assert time.thread_time() - began < _SECONDS, "it takes too long"


def _unfolded(text: str) -> str:
    return text.replace("''", "'")


def _nodes(tree: Any) -> Iterator[Any]:
    stack = [tree]
    while stack:
        node = stack.pop()
        assert type(node) in _KINDS, f"{type(node).__name__} is no part of a condition"
        yield node
        for each in dataclasses.fields(node):
            value = getattr(node, each.name)
            inside = value if isinstance(value, tuple) else (value,)
            stack += [part for part in inside if dataclasses.is_dataclass(part)]


def _check(node: Any) -> None:
    if isinstance(node, condition.ColumnPath):
        assert node.parts
        assert not node.parts[0].lower().startswith("_clew"), "a hidden column"
        assert all(node.parts)
        for part in node.parts:
            part.encode()
    if isinstance(node, condition.Like):
        node.pattern.encode()
    if isinstance(node, condition.Constant):
        value = node.value
        assert value is None or type(value) in {bool, int, float, Decimal, str}
        assert not isinstance(value, float) or math.isfinite(value), "no finite number"
        str(value).encode()


class _Column:
    """A column of a Spark that is not there."""

    def __init__(self, spark: _Spark) -> None:
        self._spark = spark

    def _taken(self, *others: Any) -> _Column:
        for other in others:
            for each in other if isinstance(other, list) else [other]:
                assert isinstance(each, _Column), "a plain value where a column should be"
        return self

    __eq__ = __ne__ = _taken  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = _taken
    __add__ = __sub__ = __mul__ = __truediv__ = __mod__ = __and__ = __or__ = _taken
    __neg__ = __invert__ = _taken
    isNull = eqNullSafe = isin = between = _taken  # noqa: N815 (Spark's spelling)
    __hash__ = None  # type: ignore[assignment]

    def like(self, pattern: str) -> _Column:
        self._spark.note("like", pattern)
        return self

    def getField(self, name: str) -> _Column:
        self._spark.note("field", name)
        return self


class _Spark:
    """What columns are built with; it notes each text that it is handed, and what as."""

    allowed = frozenset({"like", "field", "name", "literal"})

    def __init__(self) -> None:
        self.handed: list[tuple[str, str]] = []
        self.functions = SimpleNamespace(lit=self._literal)

    def note(self, kind: str, text: object) -> None:
        assert isinstance(text, str)
        self.handed.append((kind, text))

    def _literal(self, value: object) -> _Column:
        if isinstance(value, str):
            self.note("literal", value)
        return _Column(self)

    def named(self, name: str) -> _Column:
        quoted = quote(name)
        inner = quoted[1:-1]
        assert quoted[0] == quoted[-1] == "`"
        assert "`" not in inner.replace("``", ""), "a name that ends its quotes"
        self.note("name", name)
        return _Column(self)


def _text(rng: random.Random) -> str:
    way = rng.randrange(8)
    if way == 0:
        return rng.choice(["(", "not ", "-", "n + ", "not(", "n in (", "`", "'"]) * rng.choice(
            [3, 30, 50, 300, 3_999, 5_000]
        ) + rng.choice(["", "n = 1", ")"])
    if way == 1:
        unit = rng.choice(["n = 1 or ", "n, ", "a.", "1 + ", "not n and "])
        return "n = 1 and " + unit * rng.choice([5, 39, 41, 150, 400]) + "n"
    if way == 2:
        return "".join(chr(rng.choice([rng.randrange(128), rng.randrange(0x110000)]))
                       for _ in range(rng.randrange(60)))  # fmt: skip
    if way < 6:
        return _changed(rng.choice(_SOUND), rng)
    glue = rng.choice([" ", " ", ""])
    return glue.join(rng.choice(_PIECES) for _ in range(rng.randint(1, rng.choice([6, 12, 80]))))


def _changed(text: str, rng: random.Random) -> str:
    letters = list(text)
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        place = rng.randrange(len(letters) + 1)
        change = rng.randrange(4)
        if change == 0:
            letters[place:place] = list(rng.choice(_PIECES))
        elif change == 1:
            del letters[place : place + rng.randint(1, 6)]
        elif change == 2:
            other = rng.choice(_SOUND)
            letters[place:place] = list(other[rng.randrange(len(other)) :])
        else:
            letters[place : place + 1] = [chr(rng.randrange(1, 0x300))]
    return "".join(letters)
