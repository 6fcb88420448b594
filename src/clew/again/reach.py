"""Whether a query can be computed again from its sources, and how far apart its rows may lie.

`obstacle` says why not: a source that cannot be read again, something that gives other values the
next time, or a step of a stream whose choice depended on arrival. `reach` says how far from the
rows that contributed one must read so that every window in between is complete.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.again.cover import Reach
from clew.again.moments import is_of_moments, window_is_of_moments, window_of
from clew.expiry.between import between
from clew.operators.aggregate import Aggregate
from clew.operators.keep import Keep, shown
from clew.operators.named import Named
from clew.operators.ordered import Ordered
from clew.operators.source import Source
from clew.plan.analysis import analysed, explain, optimized
from clew.plan.columns import named
from clew.plan.duration import micros
from clew.plan.facts import Rows
from clew.plan.functions import CUT_SHORT, unsettled
from clew.plan.order import Decisions, by_name, column_numbers
from clew.plan.spans import span_column
from clew.sources.origins import keeps_rows_single

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from clew.plan.facts import Pairing
    from clew.plan.node import Node

_GROUPS = re.compile(r"\b(FlatMap(Co)?Groups|TransformWithState)")
_PROBE = 1_734_021_877
_SIDE_BY_SIDE = re.compile(r"^window\((\w+), '([^']+)', '\2', '0 second'\)")


def obstacle(node: Node, *, whole: bool) -> str | None:
    """Say why a query cannot be computed again; None if it can.

    Args:
        node: The graph.
        whole: All of it is computed again; else aggregations, named frames and what lies below.
    """
    sources = [each.operator for each in node.walk() if isinstance(each.operator, Source)]
    why = next(filter(None, map(_not_read_again, sources)), None)
    if why:
        return why
    again = list(_computed_again(node, whole=whole))
    for each in again:
        if not each.operator.facts.repeats:
            return f"`{each.operator.kind}` may choose other rows when the query is computed again"
    # What lies below a step is in the step's own plan, so the outermost say it all.
    inner = {i.id for each in again for i in each.inputs}
    texts = [explain(each.plain.df) for each in again if each.id not in inner]
    for text in texts:
        name = unsettled(analysed(text))
        if name == CUT_SHORT:
            return "Spark's text of the plan is cut short, so not all of its functions are known"
        if name:
            return (
                f"`{name}()` gives another value when the query is computed again, or is not known "
                "to give the same"
            )
    if any("EvalPython" in line for text in texts for line in optimized(text)):
        why = _undecided(again)
        if why:
            return why
    return _by_order(again, texts, whole=whole)


def _not_read_again(source: Source) -> str | None:
    """Say why a source cannot be read again, or would then have other rows; None if it can."""
    if isinstance(source.again, str):
        return f"source `{source.origin.name}` cannot be read again: {source.again}"
    for df in (source.df, source.again.table):
        if df is None:
            continue
        step = Decisions(analysed(explain(df)), {}).chosen
        if step:
            return (
                f"a step of `{source.origin.name}` ({step}) may choose other rows when the source "
                "is read again"
            )
        # Also where no step uses what it returns: the rows of a source are shown.
        if _source_changes_mind(df):
            return (
                f"the source `{source.origin.name}` calls a function that is not known to return "
                "the same when it is read again"
            )
    return None


def _by_order(again: Sequence[Node], texts: Sequence[str], *, whole: bool) -> str | None:
    """Say what is decided by values that depend on the order in which rows are read."""
    types = _types(again)
    ours = not any(_hands_over_groups(each) for each in again)
    found = (
        Decisions(analysed(text), types, ids_of_rows=whole, groups_sorted=ours).why
        for text in texts
    )
    why = next(filter(None, found), None)
    if why:
        return (
            f"{why} may be another when rows are read in another order, and a later step decides "
            "by it"
        )
    for each in again:
        # Rows of a source are shown as well; those that it was given may be made of others.
        if isinstance(each.operator, (Named, Source)):
            lines = analysed(explain(each.plain.df))
            shown = Decisions(lines, types, groups_sorted=ours).shown
            if shown:
                return (
                    f"{shown} may be another when rows are read in another order, and the rows of "
                    f"`{each.operator.label}` show it"
                )
    return None


def _hands_over_groups(node: Node) -> bool:
    """Tell whether a function of the user's own gets whole groups, in whatever order they are."""
    if isinstance(node.operator, Source):
        return bool(_GROUPS.search(explain(node.plain.df)))
    return node.operator.facts.hands_over_groups


def _types(nodes: Iterable[Node]) -> dict[str, T.DataType]:
    """Return the types of the columns that sources give, and aggregations read and give."""
    types: dict[str, T.DataType] = {}
    names: dict[str, set[T.DataType]] = {}
    for each in [one for node in nodes if _has_types(node) for one in (node, *node.inputs)]:
        df = each.plain.df
        numbers = column_numbers(analysed(explain(df)))
        fields = df.schema.fields
        if numbers is not None and len(numbers) == len(fields):
            types |= {n: f.dataType for n, f in zip(numbers, fields, strict=True)}
        for one in fields:
            names.setdefault(one.name, set()).add(one.dataType)
    # The second side of a join with itself has numbers of its own.
    types |= {by_name(name): kinds.pop() for name, kinds in names.items() if len(kinds) == 1}
    return types


def _has_types(node: Node) -> bool:
    return isinstance(node.operator, Source) or node.operator.facts.aggregates


def _undecided(nodes: Iterable[Node]) -> str | None:
    """Look for a Python function that was declared non-deterministic."""
    for each in nodes:
        if each.operator.facts.evaluates and _changes_mind(each):
            return (
                f"`{each.operator.kind}` calls a function that is declared non-deterministic, so "
                "it may return something else when the query is computed again"
            )
    return None


def _changes_mind(node: Node) -> bool:
    """Find out whether Spark takes a step with a Python function for deterministic.

    A filter behind the step is moved before it only if nothing in the step could change by that.
    """
    df = node.plain.df
    calls = sum("EvalPython" in line for line in optimized(explain(df)))
    before = sum(
        "EvalPython" in line for each in node.inputs for line in optimized(explain(each.plain.df))
    )
    if calls == before:
        return False
    known = {name for each in node.inputs for name in each.columns}
    passing = [c for c in node.columns if c in known and node.columns.count(c) == 1]
    if not passing:
        return True  # nothing to probe with; better to carry rows than to trust
    filters, calls_at = _probed(df, passing[0])
    return bool(filters and calls_at) and min(filters) < min(calls_at)


def _source_changes_mind(df: DataFrame) -> bool:
    """Find out whether a source calls a Python function that Spark takes for non-deterministic.

    The columns that no function makes are not known, so a filter on each is tried.
    """
    if not any("EvalPython" in line for line in optimized(explain(df))):
        return False
    if not keeps_rows_single(df):
        return True  # a filter may go another way than by the function
    probes = (_probed(df, name) for name in df.columns)
    return not any(not calls_at or min(filters) > max(calls_at) for filters, calls_at in probes)


def _probed(df: DataFrame, column: str) -> tuple[list[int], list[int]]:
    """Filter a frame by a column; return where in its plan the filter and Python functions are."""
    lines = optimized(explain(df.filter(F.hash(named(column)) != _PROBE)))
    filters = [i for i, line in enumerate(lines) if str(_PROBE) in line]
    return filters, [i for i, line in enumerate(lines) if "EvalPython" in line]


def stream_obstacle(node: Node, *, whole: bool) -> str | None:
    """Say which step of a stream chose by arrival what cannot be chosen again.

    Args:
        node: The graph.
        whole: All of it is computed again (intervals); else what lies below aggregations.
    """
    again = list(_computed_again(node, whole=whole))
    for each in again:
        why = _by_arrival(each)
        if why:
            return why
    # A row may come just after a session was closed that it would have made longer.
    inner = again if whole else [i for each in again if is_gathering(each) for i in each.inputs]
    if any(_is_session(n) for each in inner for n in each.walk()):
        return "a session window grows with the rows as they come"
    return None


def _is_session(node: Node) -> bool:
    return node.operator.facts.grows and node.plain.df.isStreaming


def _computed_again(node: Node, *, whole: bool) -> Iterator[Node]:
    """Yield the nodes that are computed again: all, or what is looked up and what lies below."""
    seen: set[int] = set()
    tops = [node] if whole else [each for each in node.walk() if is_looked_up(each)]
    for top in tops:
        for each in top.walk():
            if each.id not in seen:
                seen.add(each.id)
                yield each


def _by_arrival(node: Node) -> str | None:
    facts = node.operator.facts
    streaming = node.plain.df.isStreaming
    if facts.first_come and streaming:
        return facts.first_come
    if facts.pairing is not None and facts.pairing.times is not None:
        return _join_by_arrival(node, facts.pairing, facts.pairing.times)
    if (
        facts.aggregates
        and streaming
        and _is_raw(node.inputs[0])
        and has_stream_join(node.inputs[0])
    ):
        return "the aggregation judges lateness by the bounds of a join of streams before it"
    return None


def _join_by_arrival(
    node: Node, pairing: Pairing, times: tuple[str | None, str | None]
) -> str | None:
    if pairing.how == "semi":
        return "a semi join of two streams keeps the match that came first"
    if pairing.how == "outer":
        return "a full join of two streams matches nulls, and of two tables it does not"
    text = " ".join(pairing.names or [shown(pairing.on)])
    for name, side in zip(times, node.inputs, strict=True):
        is_used = name is None or re.search(rf"\b{re.escape(name)}\b", text)
        if not is_used and _is_raw(side):
            # Spark compares a column with the watermark only if the query still needs it.
            return f"whether the join drops late rows depends on `{name}`, which it does not use"
    if any(has_stream_join(side) for side in node.inputs):
        return "a join of streams behind another judges lateness by the bounds of both"
    return None


def has_stream_join(node: Node) -> bool:
    """Tell whether rows of two streams wait for each other, in a node or below it."""
    return any(_waits(each) for each in node.walk())


def _waits(node: Node) -> bool:
    pairing = node.operator.facts.pairing
    return pairing is not None and pairing.waits


def _is_raw(node: Node) -> bool:
    """Tell whether rows of a stream come through without a step that keeps state."""
    if _closes(node):
        return False
    if isinstance(node.operator, Source):
        return node.plain.df.isStreaming
    return any(_is_raw(each) for each in node.inputs)


def is_stateful(node: Node) -> bool:
    """Tell whether a step of a stream may keep state: any that is not known to keep none."""
    return node.operator.facts.has_state and node.plain.df.isStreaming


def _closes(node: Node) -> bool:
    """Tell whether a step of a stream keeps rows until the watermark passes them."""
    return node.operator.facts.closes and is_stateful(node)


def is_gathering(node: Node) -> bool:
    """Tell whether a step makes one row of a number of rows that only the data decides."""
    return node.operator.facts.rows is Rows.GATHERED


def is_looked_up(node: Node) -> bool:
    """Tell whether rows of a step, or of its groups, are looked up when pointers are followed."""
    return is_gathering(node) or isinstance(node.operator, Named)


def pointers_obstacle(node: Node) -> str | None:
    """Say which step pointers cannot stand for."""
    looked_up = [each for each in node.walk() if is_looked_up(each)]
    # Named rows are looked up with what is in them; of a group's rows only those before it are.
    again = [i for each in looked_up for i in each.inputs]
    if any(below.operator.facts.breaks_ties for each in again for below in each.walk()):
        return (
            "a window function may put rows that are equal in its order another way round when it "
            "is computed again"
        )
    return None


def reach(node: Node, *, whole: bool) -> Reach:
    """Return how far around the source rows of a result one must read.

    One aggregation needs its own rows only. Where one follows another, the windows of the first
    that end near the result's must be complete as well, or they would pass for others. None if the
    graph does not say: an aggregation without a window, or with one over a time that is not the
    source's, an outer join. Then all must be read.

    Args:
        node: The graph.
        whole: All of it is computed again; else aggregations, named frames and what lies below.
    """
    cell = None if whole else _cell(node)
    length = _length(node, whole=whole, cell=cell)
    return Reach(length, _straight(node), cell, not whole and cell is None)


def time_apart(node: Node) -> int | None:
    """Return how far a result's times may be from those of its source rows; None if unknown."""
    nodes = list(node.walk())
    steps = [_size(each) for each in nodes if is_gathering(each)]
    steps += [_width(each) for each in nodes if each.operator.facts.pairing]
    return None if None in steps else sum(filter(None, steps))


def _straight(node: Node) -> frozenset[str]:
    """Name the sources to which just one path leads."""
    paths = Counter({node.id: 1})
    sources: Counter[str] = Counter()
    for each in reversed(list(node.walk())):
        for before in each.inputs:
            paths[before.id] += paths[each.id]
        if isinstance(each.operator, Source):
            sources[each.operator.origin.name] += paths[each.id]
    return frozenset(name for name, count in sources.items() if count == 1)


def _length(node: Node, *, whole: bool, cell: int | None) -> int | None:
    again = list(_computed_again(node, whole=whole))
    if any(each.operator.facts.rests_on_others for each in again):
        return None
    gatherings = [each for each in again if is_gathering(each)]
    below = {n.id: n for g in gatherings for i in g.inputs for n in i.walk()}.values()
    if cell is not None or not any(is_gathering(each) for each in below):
        return 0
    sizes = [_size(each) for each in gatherings]
    # What is joined before it is gathered may be as far apart as the join allows.
    widths = [_width(each) for each in below if each.operator.facts.pairing]
    # A stream's windows go by their ends, so what is in them is earlier; others may go by a start.
    back = 1 if all(each.plain.df.isStreaming for each in gatherings) else 2
    if None in sizes or None in widths:
        return None
    return back * sum(filter(None, sizes)) + 2 * sum(filter(None, widths))


def _cell(node: Node) -> int | None:
    """Return the size of the windows before the last ones, if they are side by side; else None.

    Whoever then reads from one multiple of it to another has each of these windows whole or not at
    all, and none that is cut off can pass for another.
    """
    if any(isinstance(n.operator, Named) for n in node.walk()):
        return None  # its rows are looked up with what is in them, so the last count as well
    gatherings = [n for n in _computed_again(node, whole=False) if is_gathering(n)]
    below = {n.id for each in gatherings for i in each.inputs for n in i.walk()}
    sizes = {_side_by_side(each) for each in gatherings if each.id in below}
    return sizes.pop() if len(sizes) == 1 else None


def _side_by_side(node: Node) -> int | None:
    """Return the size of windows of a source's own time that neither overlap nor are shifted."""
    if not isinstance(node.operator, Aggregate):
        return None
    [before] = node.inputs
    while isinstance(before.operator, Keep):
        [before] = before.inputs
    if not isinstance(before.operator, Source):
        return None
    origin = before.operator.origin
    time = span_column(origin)
    # Other types of time are turned into microseconds by the time zone, which windows are not.
    if time is None or not isinstance(origin.schema[time].dataType, T.TimestampType):
        return None
    for key in node.operator.keys:
        found = _SIDE_BY_SIDE.search(shown(key))
        if found:
            return micros(found[2]) if found[1] == time else None
    return None


def _size(node: Node) -> int | None:
    if isinstance(node.operator, Ordered):
        return node.operator.size_us if is_of_moments(node) else None
    if not isinstance(node.operator, Aggregate) or not window_is_of_moments(node):
        return None
    return window_size(node.operator)


def _width(node: Node) -> int | None:
    if _waits(node):
        return between(node).width
    # A table without times is read as a whole whenever it is read.
    return 0 if any(_is_timeless(side) for side in node.inputs) else None


def _is_timeless(node: Node) -> bool:
    sources = [n.operator for n in node.walk() if isinstance(n.operator, Source)]
    return all(span_column(each.origin) is None for each in sources)


def makes_rows_of_nothing(node: Node) -> bool:
    """Tell whether a batch query may return rows that come from no row, such as a total of none."""
    return any(each.operator.facts.of_nothing for each in node.walk())


def window_size(aggregate: Aggregate) -> int | None:
    """Read the size of the window among an aggregation's keys, in microseconds."""
    window = window_of(aggregate)
    return None if window is None else micros(window["size"])
