"""How far the time by which a step keeps rows is ahead of the rows' own time.

A step of a stream keeps a row until the watermark has passed a time of that row: the end of its
window, or a time as it is. Where the window stands in the grouping itself, its size is there to be
read. It may as well have been computed before, in a `select`, been renamed since, or be a window of
windows. So the column is followed to where it comes from, and each window on the way adds its size.
Windows that an earlier step has kept rows for are in that step's account, and end the search.

What cannot be followed gives None: whoever asks takes it as no bound at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.operators.aggregate import Aggregate
from clew.operators.dedup import Dedup
from clew.operators.join import Join
from clew.operators.keep import Keep, shown
from clew.operators.named import Named
from clew.operators.ordered import Ordered
from clew.operators.project import DropAt, Project, Reshape
from clew.operators.property import Property
from clew.operators.source import Source
from clew.operators.union import Union
from clew.operators.unpivot import Unpivot
from clew.plan.columns import find_references
from clew.plan.duration import micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.plan.node import Node

_LENGTH = r"(?:'[^']*'|[\w. ]+)"  # Spark Connect prints texts without quotes
_WINDOW = re.compile(
    rf"window\((?P<time>[^,]+?), *(?P<size>{_LENGTH})(?:, *{_LENGTH})*\)", re.IGNORECASE
)
_WINDOW_TIME = re.compile(r"window_time\((?P<window>[^,]+)\)", re.IGNORECASE)
_ALIAS = re.compile(r"(?P<value>.*) AS (?P<name>`(?:[^`]|``)+`|.+)", re.IGNORECASE | re.DOTALL)
_RENAMES = ("withColumnRenamed", "withColumnsRenamed", "toDF")


def lead(node: Node, text: str) -> int | None:
    """Say how far a time may be ahead of all that earlier steps have accounted for.

    Args:
        node: The node over whose columns the time is.
        text: The time or the window, as Spark writes it.

    Returns:
        Microseconds; None if it cannot be told.
    """
    value, _ = _split(text)
    reference = next(find_references(value), None)
    if reference is not None and reference[0] == value:
        return _referenced(node, *reference[1:])
    window = _WINDOW.fullmatch(value)
    if window:
        return _sum(micros(window["size"].strip("'")), lead(node, window["time"]))
    end = _WINDOW_TIME.fullmatch(value)
    return lead(node, end["window"] if end else value) if end else _named(node, value)


def _split(text: str) -> tuple[str, str | None]:
    """Take an expression and its name apart."""
    found = _ALIAS.fullmatch(text.strip())
    return (found["value"].strip(), _bare(found["name"])) if found else (text.strip(), None)


def _bare(name: str) -> str:
    quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if quoted else name


def _referenced(node: Node, number: int, position: int) -> int | None:
    """Follow a column that was taken as `frame["column"]` at the frame it was taken from."""
    found = next((each for each in node.walk() if each.id == number), None)
    return None if found is None else _column(found, found.columns[position])


def _named(node: Node, text: str) -> int | None:
    """Follow a name, which may be that of a frame and a column or of a window and its end."""
    column = _find(node, _bare(text))
    if column is not None:
        return _column(node, column)
    # A dot or brackets: `frame.column`, `window.end`, `window['end']`.
    first, _, rest = re.sub(r"\['?(\w+)'?\]$", r".\1", text).partition(".")
    window = _find(node, _bare(first))
    if window is not None:
        return _column(node, window) if rest.lower() in ("start", "end") else None
    return _named(node, rest) if rest else None


def _find(node: Node, name: str) -> str | None:
    """Find a column by its name; Spark does not mind the case unless it was told to."""
    names = [c for c in node.columns if c.lower() == name.lower()]
    return name if name in names else (names[0] if len(names) == 1 else None)


def _column(node: Node, column: str) -> int | None:
    """Follow a column of a node to where it was made."""
    operator = node.operator
    if isinstance(operator, Source):
        return 0 if operator.origin.event_time == column else None
    if isinstance(operator, (Keep, Named, Property, Dedup, DropAt)):
        return _column(node.inputs[0], column) if column in node.inputs[0].columns else None
    if isinstance(operator, Reshape):
        return _reshaped(node, operator, column)
    if isinstance(operator, Project):
        return _projected(node, operator, column)
    if isinstance(operator, Unpivot):
        return _one_of(node.inputs[0], [shown(each) for each in operator.ids], column)
    if isinstance(operator, Aggregate):
        return _grouped(node, operator, column)
    if isinstance(operator, Ordered):
        return 0 if column == operator.moment else None
    if isinstance(operator, Union):
        return _of_union(node, operator, column)
    if isinstance(operator, Join):
        sides = [side for side in node.inputs if column in side.columns]
        return _most(_column(side, column) for side in sides)
    return None


def _reshaped(node: Node, operator: Reshape, column: str) -> int | None:
    [before] = node.inputs
    # `fillna` and `replace` leave times and windows as they are: they know other types only.
    name = before.columns[node.columns.index(column)] if operator.verb in _RENAMES else column
    return _column(before, name) if name in before.columns else None


def _projected(node: Node, project: Project, column: str) -> int | None:
    [before] = node.inputs
    if isinstance(project.columns, dict):
        changed = {name.lower(): shown(each) for name, each in project.columns.items()}
        text = changed.get(column.lower())
        return _column(before, column) if text is None else lead(before, text)
    return _one_of(before, [shown(each) for each in project.columns], column)


def _one_of(before: Node, texts: Iterable[str], column: str) -> int | None:
    """Follow a column to the one of some expressions that makes it."""
    found = []
    for text in texts:
        value, name = _split(text)
        if value == "*" or value.endswith(".*") or value == "unresolvedstar()":
            found += [value] * (column in before.columns)
        elif _called(before, value, name).lower() == column.lower():
            found.append(value)
    if len(found) != 1:
        return None
    [value] = found
    return _column(before, column) if value.endswith(("*", "()")) else lead(before, value)


def _called(before: Node, value: str, name: str | None) -> str:
    """Say what Spark calls an expression."""
    if name is not None:
        return name
    if _WINDOW.fullmatch(value):
        return "window"
    found = _find(before, _bare(value))
    return found if found is not None else value.rpartition(".")[2]


def _grouped(node: Node, aggregate: Aggregate, column: str) -> int | None:
    if column not in aggregate.key_names:
        return None
    key = aggregate.key_names.index(column)
    if aggregate.clock is not None and aggregate.clock.key == key:
        return 0  # the aggregation itself keeps rows for as long
    return lead(node.inputs[0], shown(aggregate.keys[key]))


def _of_union(node: Node, union: Union, column: str) -> int | None:
    if union.by_name:
        sides = [(side, _find(side, column)) for side in node.inputs]
        return _most(None if name is None else _column(side, name) for side, name in sides)
    at = node.columns.index(column)
    return _most(_column(side, side.columns[at]) for side in node.inputs)


def _most(leads: Iterable[int | None]) -> int | None:
    """Return the largest; None if one is not known, or there is none."""
    found = list(leads)
    return None if None in found or not found else max(each for each in found if each is not None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
