"""A `Column` as SQL text, and back.

There is no public way to ask a `Column` for its SQL. What it prints is near: functions and names as
SQL has them, operators in front of their arguments, as in `>(speed, 0)`, numbers and times bare.
`spellings` lists what the printed form may stand for, the likeliest first. None of them is to be
trusted: whoever stores one compares the plan that Spark makes of it with the user's own, see
`same_rows`. Under Spark Connect columns print otherwise, and the comparison decides there, too.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F

from clew.plan.columns import quote, user_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`)", re.DOTALL)
_SYMBOL = re.compile(r"(?<![\w)`])([-+*/%=<>!&|^~]+)\(")
_QUOTED_SYMBOL = re.compile(r"`([-+*/%=<>!&|^~]+)`\(")
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d+)(?![\w.])")
_MOMENT = re.compile(r"(?<![\w.'])(\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)(?![\w.])")
_DAY = re.compile(r"(?<![\w.'-])(\d{4,}-\d\d-\d\d)(?![\w.:-]| \d\d:)")
_FRAME = re.compile(r"(BETWEEN|AND) (-?\d+)L?(?= AND |\))")
_CALL = re.compile(r"^(\w+)\((?!\))")
_ALIAS = re.compile(r"^(?P<value>.*) AS (?P<name>[^()`]*[^()`\w][^()`]*)$", re.DOTALL)
_OWN_NAME = re.compile(r"^(?P<value>.+) AS (?P=value)$", re.DOTALL)
_LAMBDA = re.compile(r"(?:\((\w+(?:, \w+)*)\)|(?<![\w`'.])(\w+)) ->")
_ORDER = re.compile(r"^(?P<value>.*) (?P<order>ASC|DESC) NULLS (?P<nulls>FIRST|LAST)$", re.DOTALL)
_LENGTH = re.compile(r"(?<=, )(\d+ (?:micro|milli)?(?:second|minute|hour|day|week)s?)(?=[,)])")
_NAME = re.compile(r"\w+")
_NAMED_COPY = re.compile(
    r"(?P<copy>_clew_ref_\d+_\d+)(?P<first> AS \w+)?"
    r"(?P<path>(?:\['\w+'\])*)(?P<name>(?<=\]) AS \w+)?"
)
_NAMES = re.compile(r"(?<!\w)(?:struct|arrays_zip)\Z")
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def printed(column: Column) -> str:
    """Return what a column prints, without the name of its class.

    Examples:
        >>> printed(F.col("speed") > 0) if spark else None  # needs a session
        '>(speed, 0)'
    """
    text = str(column)
    is_framed = text.startswith("Column<'") and text.endswith("'>")
    return _unnamed(text[len("Column<'") : -len("'>")] if is_framed else text)


def _unnamed(text: str) -> str:
    """Leave out what hidden copies of columns are called, but where it names something.

    Examples:
        >>> _unnamed("max(_clew_ref_1_2 AS v)"), _unnamed("_clew_ref_1_2 AS v")
        ('max(_clew_ref_1_2)', '_clew_ref_1_2 AS v')
        >>> _unnamed("struct(_clew_ref_1_2 AS v, upper(_clew_ref_1_3['a'] AS a))")
        "struct(_clew_ref_1_2 AS v, upper(_clew_ref_1_3['a']))"
    """
    if "_clew_ref_" not in text:
        return text

    def shortened(match: re.Match[str]) -> str:
        path, name = match["path"], match["name"]
        last = name if path else match["first"]
        names_something = match.end() == len(text) and match.start() == 0
        if names_something or _names_its_arguments(text, match.start()):
            return f"{match['copy']}{path}{last or ''}"
        return f"{match['copy']}{path}"

    return _NAMED_COPY.sub(shortened, text)


def _names_its_arguments(text: str, at: int) -> bool:
    """Tell whether what stands here is an argument of a function that names its results by it."""
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if depth < 0:
            return _NAMES.search(text, 0, place) is not None
    return False


def plain_symbols(text: str) -> str:
    """Write operators as Spark prints them: what was stored then looks like what was not.

    Examples:
        >>> plain_symbols("`>`(speed, 0)")
        '>(speed, 0)'
    """
    return _QUOTED_SYMBOL.sub(r"\1(", text)


def spellings(text: str, names: Sequence[str] = ()) -> Iterator[str]:
    """List what SQL a printed column may stand for, the likeliest first.

    Args:
        text: The column, as printed.
        names: The columns that it may be about.

    Examples:
        >>> next(spellings(">(speed, 1.5)"))
        '`>`(speed, 1.5D)'
    """
    settled = settled_lambdas(text)
    seen: set[str] = set()
    shapes = (settled, _with_names(settled, names), _remote(settled), text)
    for first in map(_as_sql, shapes):
        # A number with a point is far more often a Python float than a decimal.
        numbers = _outside(first, lambda part: _FLOAT.sub(r"\1D", part))
        for second in (numbers, first):
            for third in (second, _CALL.sub(r"\1(DISTINCT ", second)):
                if third not in seen:
                    seen.add(third)
                    yield third


def column_of(text: str) -> Column:
    """Make a column of SQL text, which may end with an order."""
    ordered = _ORDER.match(text)
    if ordered is None:
        return F.expr(text)
    column: Column = getattr(
        F.expr(ordered["value"]), f"{ordered['order']}_nulls_{ordered['nulls']}".lower()
    )()
    return column


def same_rows(make: Callable[[], DataFrame], as_this: DataFrame) -> bool:
    """Tell whether a frame is sure to have the rows of another: same plan, names and types."""
    with quiet():
        try:
            made = make()
            return _fields(made) == _fields(as_this) and made.sameSemantics(as_this)
        except Exception:  # noqa: BLE001 (a text that Spark does not take, in whatever way)
            return False


def _fields(df: DataFrame) -> list[tuple[str, str]]:
    users = set(user_columns(df))
    return [(f.name, f.json()) for f in df.schema.fields if f.name in users]


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from logging a failed analysis where a failure is only an answer."""
    # PySpark's own way to get at them: it cannot use loggers of a name that Python has made.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        yield
    finally:
        for each, was in zip(loggers, before, strict=True):
            each.disabled = was


def settled_lambdas(text: str) -> str:
    """Number the variables of functions from 1 on; PySpark counts on through a process.

    Examples:
        >>> settled_lambdas("transform(xs, x_7 -> +(x_7, y))")
        'transform(xs, x_1 -> +(x_1, y))'
    """
    names: dict[str, str] = {}
    for match in _LAMBDA.finditer(text):
        for name in (match[1] or match[2]).split(", "):
            names.setdefault(name, f"{re.sub(r'_[0-9]+$', '', name)}_{len(names) + 1}")
    if not names:
        return text
    return _outside(text, lambda part: _NAME.sub(lambda m: names.get(m[0], m[0]), part))


def _as_sql(text: str) -> str:
    def translated(part: str) -> str:
        part = _SYMBOL.sub(r"`\1`(", part)
        part = _DAY.sub(r"DATE '\1'", _MOMENT.sub(r"TIMESTAMP '\1'", part))
        # A negative number of rows that follow is the plan of a frame made in Python; SQL's
        # `PRECEDING` is another plan for the same rows.
        return _FRAME.sub(r"\1 \2 FOLLOWING", part) if " OVER " in text else part

    return _outside(text, translated)


def _remote(text: str) -> str:
    """Spell what columns of Spark Connect print: texts without quotes, and a word for the star."""
    return _outside(text, lambda part: _LENGTH.sub(r"'\1'", part.replace("unresolvedstar()", "*")))


def _with_names(text: str, names: Sequence[str]) -> str:
    """Quote the names that SQL would not read as one, among the columns and at the end."""
    odd = sorted((n for n in names if not _NAME.fullmatch(n)), key=len, reverse=True)
    own = _OWN_NAME.match(text)
    if own is not None:  # as in `groupBy(...).sum("kwh")`
        return f"{_with_names(own['value'], names)} AS {quote(own['value'])}"
    alias = _ALIAS.match(text)
    if alias is not None:
        return f"{_with_names(alias['value'], names)} AS {quote(alias['name'])}"
    for name in odd:
        exact = re.compile(rf"(?<![\w`.]){re.escape(name)}(?![\w`])")
        text = _outside(text, partial(exact.sub, lambda _, name=name: quote(name)))
    return text


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Change a text but for what is in quotes."""
    parts = _QUOTED.split(text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))
