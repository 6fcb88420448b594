"""What may be built from a stored pipeline: known functions and verbs, and nothing that runs code.

Whoever trusts a store trusts it to say what is computed, not what is started on the machine. SQL
can start processes (`TRANSFORM ... USING`), call Java (`reflect`), read other tables and files;
a schema can name a Python class. So each text is looked at before Spark sees it, by a reading that
is stricter than Spark's: what could be read in two ways is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from clew.exceptions import GraphError
from clew.plan.functions import READS_FILES, SETTLED, SYMBOLS, UNSETTLED, WINDOWS
from clew.plan.settings import is_setting

if TYPE_CHECKING:
    from collections.abc import Iterable

_RUNS_CODE = frozenset("reflect try_reflect java_method python_worker_logs".split())  # noqa: SIM905
_TABLES = frozenset("range sql_keywords collations measure".split())  # noqa: SIM905
FUNCTIONS = (SETTLED | WINDOWS | UNSETTLED) - _RUNS_CODE - _TABLES - READS_FILES
"""Functions that only compute, even if not the same each time."""

_KEYWORDS = frozenset(
    """
    in and or not over when then else case by as between like is on end decimal varchar char
    distinct where interval order partition asc desc rlike ilike with unresolvedstar outer all
    """.split()  # noqa: SIM905
)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", re.DOTALL)
_BACKTICKED_CALL = re.compile(r"`((?:[^`]|``)*)`\s*\(")
_CALL = re.compile(r"([\w$]+)\s*\(")
_UNCLEAR = re.compile(r"""\\|--|/\*|[";]|(?i:(?<!\w)(?:r|u&|q)')|\.\s*[\w$]+\s*\(""")
_SUBQUERY = re.compile(
    r"\busing\b|\(\s*(?:select\b|(?:from|table|values|with|reduce|map)\b"
    r"(?!\s*(?:[),.=<>!+/%|&^(-]|(?:as|and|or|in|is)\b)))",
    re.IGNORECASE,
)


def admit_sql(text: str) -> str:
    """Return a text of SQL if it is an expression of known functions only.

    Raises:
        GraphError: It calls another function, holds a query or can be read in two ways.
    """
    bare = _QUOTED.sub(lambda m: "''" if m[0][0] == "'" else "``", text)
    called = {m[1].lower() for m in _CALL.finditer(bare)} - _KEYWORDS
    called |= {m[1].lower() for m in _BACKTICKED_CALL.finditer(_without_texts(text))} - SYMBOLS
    unknown = sorted(called - FUNCTIONS)
    if unknown:
        msg = f"the store says to call `{unknown[0]}`, and only functions that compute are called."
        raise GraphError(msg)
    # Spark puts variables in before it reads anything, also inside quotes.
    is_unclear = _UNCLEAR.search(bare) or "${" in text
    if is_unclear or "'" in bare.replace("''", "") or _SUBQUERY.search(bare):
        msg = f"the store says to compute {text[:200]!r}, which is more than an expression."
        raise GraphError(msg)
    return text


def admit_type(said: Any) -> Any:
    """Return the data of a type if it names no class of Python's.

    Raises:
        GraphError: It does: reading it would import what it names.
    """
    if isinstance(said, dict):
        if said.get("type") == "udt" or {"pyClass", "serializedClass", "class"} & set(said):
            msg = "the store has a type that names a class, and it is not known what that does."
            raise GraphError(msg)
        for key, each in said.items():
            if key != "metadata":
                admit_type(each)
    elif isinstance(said, list):
        for each in said:
            admit_type(each)
    return said


def admit_settings(said: Iterable[str]) -> None:
    """Refuse a setting that no pipeline is stored with.

    Raises:
        GraphError: There is one.
    """
    for name in sorted(said):
        if not is_setting(name):
            msg = f"the store says to set `{name}`, which is no setting of a pipeline."
            raise GraphError(msg)


def _without_texts(text: str) -> str:
    return _QUOTED.sub(lambda m: "''" if m[0][0] == "'" else m[0], text)
