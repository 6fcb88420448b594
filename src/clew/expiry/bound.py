"""For how long a source row may take part in results, read off the graph alone.

Ananke's Theorem 4.1 in Spark's terms. Results that are still to come rest on windows that end after
the watermark, so on source rows no older than the watermark less the sum of all windows, and of the
time that joins wait, on the longest path from the source to the sink. That sum is the bound U. A
row that waits in some step is expired for a query once its event time is before the query's
watermark less U.

That needs rows which come too late to be dropped on the way, and only an aggregation with a window
is sure to do so. On a path without one a row goes through whenever it comes, so it can not be
expired before the query has read it; `by_arrival` says so. On a path where nothing waits, having
been read is enough. Where a step gives no bound, it is named, and rows stay alive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.expiry.between import between
from clew.expiry.lead import lead
from clew.operators.keep import shown
from clew.operators.source import Source
from clew.operators.untouched import origin_of
from clew.plan.columns import quote
from clew.plan.facts import (
    AtOnce,
    For,
    Rows,
    UntilMet,
    UntilPassed,
    WithoutEnd,
    WithoutWindow,
    WithTables,
)
from clew.plan.written import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class Bound:
    """For how long a row of one source may take part in the results of one query.

    Attributes:
        micros: How far the watermark must be beyond a row's event time; None if nothing says.
        waits: Rows are kept in the state of some step on the way; else the watermark is no matter.
        by_arrival: A row may take part even if it comes late, so the query must have read it.
        why: The steps that give no bound.
        clock: Why the watermark does not speak of the source's event time; empty if it does.
    """

    micros: int | None = 0
    waits: bool = False
    by_arrival: bool = True
    why: tuple[str, ...] = ()
    clock: str = "no watermark"

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as plain data that JSON can hold."""
        return {
            "micros": self.micros,
            "waits": self.waits,
            "by_arrival": self.by_arrival,
            "why": list(self.why),
        }


def bounds(node: Node) -> dict[str, Bound]:
    """Return the bound of each source of a query."""
    known: dict[int, dict[str, Bound]] = {}
    for each in node.walk():
        known[each.id] = _after(each, [known[i.id] for i in each.inputs])
    return known[node.id]


def widest(all_bounds: Iterable[Bound]) -> int | None:
    """Return the largest bound: Ananke's U over sources, sinks or queries; None if one has none."""
    found = [each.micros for each in all_bounds]
    return None if None in found else max((f for f in found if f is not None), default=0)


def last_part(node: Node) -> int | None:
    """Return how far the watermark must be beyond any source row that has done all it ever will.

    None if a source has rows that are never sure to be done, or only once they were read.
    """
    found = bounds(node).values()
    return None if any(each.by_arrival for each in found) else widest(found)


def _after(node: Node, before: list[dict[str, Bound]]) -> dict[str, Bound]:
    operator = node.operator
    if isinstance(operator, Source):
        return {operator.origin.name: Bound()}
    together = _largest(before)
    if not node.plain.df.isStreaming:
        return together
    facts = operator.facts
    if facts.watermark is not None:
        return _watermarked(node, facts.watermark.column, together)
    match facts.keeps:
        case AtOnce():
            return together
        case For(micros, _):
            return _windowed(together, micros)
        case UntilPassed(time, _):
            return _until_passed(node, shown(time), together)
        case UntilMet(times):
            return _until_met(node, times, together)
        case WithTables():
            return _with_tables(node, together, before)
        case WithoutWindow() | WithoutEnd():
            return _without(together, _why_for_ever(node))


def _why_for_ever(node: Node) -> str:
    """Say why a step gives no bound; where it aggregates, what is aggregated says which it is."""
    operator = node.operator
    facts = operator.facts
    if isinstance(facts.keeps, WithoutWindow):
        called = written(operator.label) if facts.evaluates else operator.kind
        return f"`{called}` has no window"
    why = facts.keeps.why if isinstance(facts.keeps, WithoutEnd) else None
    return why or f"for how long `{operator.kind}` keeps rows is not known"


def _watermarked(node: Node, column: str, before: dict[str, Bound]) -> dict[str, Bound]:
    same = _is_event_time(node.inputs[0], column)
    clock = "" if same else f"the watermark is on `{column}`, which is not the source's event time"
    return {name: replace(bound, clock=clock) for name, bound in before.items()}


def _is_event_time(node: Node, column: str) -> bool:
    """Tell whether a column is the event time of every source whose rows are in a frame."""
    if column not in node.columns:
        return False  # written in another case than the column, or gone
    if len(node.inputs) > 1 and node.operator.facts.rows is Rows.EACH:
        sides = node.operator.made_of(node, column)
        return bool(sides) and all(
            each.is_same and _is_event_time(node.inputs[each.side], each.text) for each in sides
        )
    found = origin_of(node, column)
    return found is not None and found[0].origin.event_time == found[1]


def _until_passed(node: Node, time: str, before: dict[str, Bound]) -> dict[str, Bound]:
    size = lead(node.inputs[0], time)
    if size is None:
        why = f"for how long `{written(time)}` keeps rows cannot be read off the query"
        return _unbounded(before, why)
    return _windowed(before, size)


def _until_met(
    node: Node, times: tuple[str | None, str | None], together: dict[str, Bound]
) -> dict[str, Bound]:
    ahead = [
        None if name is None else lead(side, quote(name))
        for name, side in zip(times, node.inputs, strict=True)
    ]
    width = between(node).width
    if width is None or None in ahead:
        why = f"the join on `{written(node.operator.label)}` has no bounds in time"
        return _unbounded(together, why)
    most = width + max(each for each in ahead if each is not None)
    return {name: _more(bound, most) for name, bound in together.items()}


def _with_tables(
    node: Node, together: dict[str, Bound], before: list[dict[str, Bound]]
) -> dict[str, Bound]:
    static = [
        side for side, n in zip(before, node.inputs, strict=True) if not n.plain.df.isStreaming
    ]
    tables = {name for side in static for name in side}
    why = "any later row of the stream may be joined with it"
    return {**together, **_without({n: together[n] for n in tables}, why)}


def _windowed(before: Mapping[str, Bound], size: int) -> dict[str, Bound]:
    """Let rows wait in a window, which is sure to drop those that come too late."""
    return {name: replace(_more(b, size), by_arrival=False) for name, b in before.items()}


def _unbounded(before: Mapping[str, Bound], why: str) -> dict[str, Bound]:
    """Give no bound, for the reason that the watermark is of another time if it is."""
    return {
        name: _more(bound, 0) if bound.clock else _without({name: bound}, why)[name]
        for name, bound in before.items()
    }


def _more(bound: Bound, micros: int) -> Bound:
    """Let a row wait in a step that keeps it until the watermark is so far beyond its time."""
    if bound.clock and bound.clock not in bound.why:
        return replace(bound, micros=None, waits=True, why=(*bound.why, bound.clock))
    total = None if bound.micros is None else bound.micros + micros
    return replace(bound, micros=total, waits=True)


def _without(before: Mapping[str, Bound], why: str) -> dict[str, Bound]:
    return {
        name: replace(b, micros=None, waits=True, why=(*b.why, why)) for name, b in before.items()
    }


def _largest(sides: list[dict[str, Bound]]) -> dict[str, Bound]:
    """Take the larger bound where a source is on several paths."""
    out: dict[str, Bound] = {}
    for side in sides:
        for name, bound in side.items():
            known = out.get(name)
            out[name] = (
                bound
                if known is None
                else Bound(
                    widest([known, bound]),
                    known.waits or bound.waits,
                    known.by_arrival or bound.by_arrival,
                    tuple(dict.fromkeys((*known.why, *bound.why))),
                    known.clock or bound.clock,
                )
            )
    return out
