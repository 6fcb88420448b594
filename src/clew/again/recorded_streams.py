"""Which streams of a query have their rows recorded, and which need no record of their own.

Every step of a query makes a stream. A step that hands on each row it gets, under the same id and
at the same time, makes one whose keys are those of the stream before it: it is noted as the same,
once, in the static part, and takes no space. That is what maps, renamings and watermarks do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from clew.again.choose import choose
from clew.again.moments import holds_moment
from clew.exceptions import AssertionsRefusedError, CaptureRefusedError, WriterError
from clew.operators.named import Named
from clew.operators.source import Source
from clew.operators.untouched import hands_on
from clew.plan.columns import quote
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.plan.node import Node

Content = Literal["first", "all"]
"""Of which streams the content is kept beside the keys: of the sources only, or of all."""


@dataclass(frozen=True, slots=True)
class Time:
    """The column that says when a row was.

    Attributes:
        column: Its name.
        is_window: It is a window, whose end counts.
    """

    column: str
    is_window: bool

    @property
    def sql(self) -> str:
        """The time itself."""
        return quote(self.column) + (".`end`" if self.is_window else "")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stream whose rows are recorded.

    Attributes:
        name: The stream's name.
        node: The step that makes it.
        number: The step's number in the graph as the store has it.
        time: When its rows were, if anything says.
        same_as: The stream whose rows these are, under the same keys.
        is_first: It is a first input: a source.
    """

    name: str
    node: Node
    number: int
    time: Time | None
    same_as: str | None = None
    is_first: bool = False


def recorded_streams(
    node: Node,
    writer: str,
    which: str | Sequence[str],
    event_time: str | None = None,
    content: Content = "first",
) -> list[Recorded]:
    """Choose the streams to record, sources first.

    Args:
        node: The query.
        writer: The name of its results.
        which: `"all"` for the stream behind every step, or names of sources, named frames and the
            results.
        event_time: The results' column that says when they were, if the user named one.
        content: Of which streams the rows themselves are kept.

    Raises:
        WriterError: A name is not one of the query's.
        AssertionsRefusedError: Rows of a stream cannot be computed again.
    """
    nodes = list(node.walk())
    names = {each.id: _name(each, writer, number) for number, each in enumerate(nodes)}
    names[node.id] = writer
    wanted = _wanted(nodes, names, node, which)
    times = {each.id: _time(each) for each in nodes}
    if event_time is not None:
        times[node.id] = Time(event_time, is_window=False)
    found = []
    for number, each in enumerate(nodes):
        if each.id in wanted:
            same = _same_as(each, names, times, wanted)
            first = isinstance(each.operator, Source)
            found.append(Recorded(names[each.id], each, number, times[each.id], same, first))
    for stream in found:
        if not stream.is_first and (stream.same_as is None or content == "all"):
            _check(stream)
        if not stream.is_first and content == "all":
            _check_columns(stream)
    return found


def describe_recorded(streams: Sequence[Recorded], content: Content) -> dict[str, Any] | None:
    """Write what is recorded as plain data for the store; None if nothing is."""
    if not streams:
        return None
    described = {
        each.name: {
            "node": each.number,
            "time": each.time.column if each.time else None,
            "is_window": each.time is not None and each.time.is_window,
            "same_as": each.same_as,
            "first": each.is_first,
        }
        for each in streams
    }
    return {"content": content, "streams": described}


def _name(node: Node, writer: str, number: int) -> str:
    if isinstance(node.operator, Source):
        return node.operator.origin.name
    return node.operator.name if isinstance(node.operator, Named) else f"{writer}.{number}"


def _wanted(
    nodes: Sequence[Node], names: Mapping[int, str], sink: Node, which: str | Sequence[str]
) -> set[int]:
    if which == "all":
        return {each.id for each in nodes}
    told = [which] if isinstance(which, str) else list(which)
    known = {
        names[each.id]: each.id
        for each in nodes
        if each is sink or isinstance(each.operator, (Source, Named))
    }
    for name in told:
        if name not in known:
            msg = (
                f"`assertions` names `{name}`, which is no stream of this query.\n\nIt has "
                f"{', '.join(f'`{each}`' for each in known)}; a frame gets a name with "
                '`.named("name")`, and `assertions="all"` records the rows of every step.'
            )
            raise WriterError(msg)
    return {known[name] for name in told}


def _time(node: Node) -> Time | None:
    """Find the column that is sure to hold a time of the sources."""
    if isinstance(node.operator, Source):
        column = span_column(node.operator.origin)
        return None if column is None else Time(column, is_window=False)
    named = Counter(column.lower() for column in node.columns)
    sole = [column for column in node.columns if named[column.lower()] == 1]
    for is_window in (True, False):
        for column in sole:
            if holds_moment(node, column, of_window=is_window):
                return Time(column, is_window)
    return None


def _same_as(
    node: Node, names: Mapping[int, str], times: Mapping[int, Time | None], wanted: set[int]
) -> str | None:
    """Go back as long as rows are handed on under the same key, to the first that is recorded."""
    here, found = node, None
    while len(here.inputs) == 1:
        [before] = here.inputs
        if not _hands_on_all(here, times[here.id], times[before.id]):
            break
        found = names[before.id] if before.id in wanted else found
        here = before
    return found


def _hands_on_all(node: Node, own: Time | None, before: Time | None) -> bool:
    """Tell whether each row comes out of a step as one row with the same time."""
    if not node.operator.facts.every:
        return False
    if own is None or before is None:
        return own == before
    return own.is_window == before.is_window and hands_on(node, own.column) == before.column


def _check_columns(stream: Recorded) -> None:
    """Refuse to keep rows whose columns cannot be told apart by name.

    Raises:
        AssertionsRefusedError: Two columns have one name.
    """
    for name, count in Counter(c.lower() for c in stream.node.columns).items():
        if count > 1:
            why = f"two of its columns are called `{name}`, so its content cannot be kept"
            raise AssertionsRefusedError(stream.name, why)


def _check(stream: Recorded) -> None:
    """Refuse a stream whose rows, or when they came out, cannot be told afterwards.

    Raises:
        AssertionsRefusedError: It is such a stream.
    """
    try:
        choose(stream.node, "keys")
    except CaptureRefusedError as error:
        raise AssertionsRefusedError(stream.name, error.why) from error
    for each in stream.node.walk():
        pairing = each.operator.facts.pairing
        if pairing is not None and pairing.waits and pairing.drops_partners:
            why = "when an outer join of streams emits a row without a partner is not known"
            raise AssertionsRefusedError(stream.name, why)
