"""A condition that may come from a page: comparisons of columns, and nothing that runs code.

The search for a minimal cause hands its condition to Spark, whose SQL can call any method of Java
and read any table. So only words of a small language pass: columns, numbers, texts, comparisons,
arithmetic and `and`, `or`, `not`. At the command line and in Python, any SQL does.
"""

from __future__ import annotations

import re

from clew.exceptions import QueryError
from clew.query import show

_BEFORE_BRACKET = frozenset({"and", "or", "not", "in", "like", "between", "is", "div"})
_STATEMENTS = frozenset({"select", "from", "with", "table", "values", "exists", "case", "cast"})
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<comment>/\*|--)"
    r"|(?P<name>[^\W\d]\w*|`[^`]+`)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|(?P<text>'[^'\\]*')"
    r"|(?P<sign><=>|<=|>=|<>|!=|==|[-+*/%=<>.,()])"
    r")"
)


def check_condition(text: str) -> str:
    """Return a condition that is safe to run.

    Raises:
        QueryError: It holds something else than comparisons of columns with values.

    Examples:
        >>> check_condition("n >= 4 and window.start > '2026-01-01'")
        "n >= 4 and window.start > '2026-01-01'"
    """
    before, place = "", 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _refused(text, text[place:].strip()[:1])
        word = found[0].strip()
        if found["comment"] or word.lower() in _STATEMENTS:
            raise _refused(text, word)
        if word == "(" and _is_call(before):
            raise _refused(text, f"{before}(")
        before, place = word, found.end()
    return text


def _is_call(before: str) -> bool:
    """Tell whether a bracket behind a word would call a function."""
    is_name = before[:1] == "`" or before[:1].isalpha() or before[:1] == "_"
    return is_name and before.lower() not in _BEFORE_BRACKET


def _refused(text: str, found: str) -> QueryError:
    return QueryError(
        f"the condition `{show.escape(text)}` holds `{show.escape(found)}`, and the explorer takes "
        "comparisons of columns only.\n\nWrite e.g. `n >= 4 and place = 'north'`; any SQL is taken "
        "by `clew minimize` and by `prov.minimize`."
    )
