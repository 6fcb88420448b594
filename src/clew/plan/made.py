"""What a column is made of: a column of an input as it is, or an expression over one.

Spark writes expressions as text, and only the text can be read everywhere. Each operator says which
column or expression a column of its rows comes from; whoever follows a time or a window through a
query asks for that and names no operator. What cannot be read for certain comes from nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.plan.columns import find_references

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.plan.node import Node

_LENGTH = r"(?:'[^']*'|[\w. ]+)"  # Spark Connect prints texts without quotes
WINDOW = re.compile(
    rf"window\((?P<time>[^,]+?), *(?P<size>{_LENGTH})(?:, *{_LENGTH})*\)", re.IGNORECASE
)
"""A window over a time, as Spark writes it."""
WINDOW_TIME = re.compile(r"window_time\((?P<window>[^,]+)\)", re.IGNORECASE)
"""The time of a window, as Spark writes it."""
_ALIAS = re.compile(r"(?P<value>.*) AS (?P<name>`(?:[^`]|``)+`|.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Made:
    """What a column is made of, in rows that come from one input.

    Attributes:
        side: The input.
        text: The name of a column of that input, or an expression over its columns.
        is_same: It is that column as it is.
    """

    side: int
    text: str
    is_same: bool = True


def same(node: Node, column: str) -> tuple[Made, ...]:
    """Say that a column is the input's of that name, if it has one."""
    return (Made(0, column),) if column in node.inputs[0].columns else ()


def one_of(before: Node, texts: Iterable[str], column: str) -> tuple[Made, ...]:
    """Find the one of some expressions that makes a column.

    Args:
        before: The node over whose columns they are.
        texts: The expressions, with their names, as Spark writes them.
        column: The column.
    """
    found = []
    for text in texts:
        value, name = split(text)
        if value == "*" or value.endswith(".*") or value == "unresolvedstar()":
            found += [Made(0, column)] * (column in before.columns)
        elif _called(before, value, name).lower() == column.lower():
            found.append(expression(before, value))
    return tuple(found) if len(found) == 1 else ()


def expression(before: Node, text: str) -> Made:
    """Say that a column is made by an expression, which may be the name of a column."""
    taken = referenced(before, text)
    column = find(before, bare(text))
    if taken is not None and taken[0] is before:
        column = taken[1]
    return Made(0, text, is_same=False) if column is None else Made(0, column)


def split(text: str) -> tuple[str, str | None]:
    """Take an expression and its name apart."""
    found = _ALIAS.fullmatch(text.strip())
    return (found["value"].strip(), bare(found["name"])) if found else (text.strip(), None)


def bare(name: str) -> str:
    """Take the quotes off a name."""
    quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if quoted else name


def find(node: Node, name: str) -> str | None:
    """Find a column by its name; Spark does not mind the case unless it was told to."""
    names = [c for c in node.columns if c.lower() == name.lower()]
    return name if name in names else (names[0] if len(names) == 1 else None)


def referenced(node: Node, text: str) -> tuple[Node, str] | None:
    """Find a column that was taken as `frame["column"]`, at the frame that it was taken from."""
    reference = next(find_references(text), None)
    if reference is None or reference[0] != text:
        return None
    found = next((each for each in node.walk() if each.id == reference[1]), None)
    return None if found is None else (found, found.columns[reference[2]])


def is_reference(text: str) -> bool:
    """Tell whether an expression is nothing but a column taken as `frame["column"]`."""
    reference = next(find_references(text), None)
    return reference is not None and reference[0] == text


def _called(before: Node, value: str, name: str | None) -> str:
    """Say what Spark calls an expression."""
    if name is not None:
        return name
    if WINDOW.fullmatch(value):
        return "window"
    found = find(before, bare(value))
    return found if found is not None else value.rpartition(".")[2]
