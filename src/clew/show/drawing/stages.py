"""The layers of a drawing: streams and operators, in the order in which rows travel.

A stage is a stream, or an operator between two streams. Its layer is the longest way to it, so
every link leads to the right; only streams that feed each other in a circle have links back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.ask.path import Steps

_Arc = tuple[int | None, int | None]


class Stage(NamedTuple):
    """A stream, or an operator on the way to one.

    Attributes:
        stream: The stream; of an operator, the query it belongs to.
        step: What tells the operator apart in its query; None for a stream.
        number: The operator's number, which gives the order of operators.
    """

    stream: str
    step: str | None = None
    number: int = -1

    @property
    def key(self) -> str:
        """The key of an operator's node."""
        return f"step:{self.stream}/{self.step}"


@dataclass
class Stages:
    """All stages of a drawing.

    Attributes:
        arcs: Which stage hands rows to which, each once.
        entries: For each pair of sink and source stream, the operators that read the source.
        exits: For each pair, the operators that make the rows of the sink.
        words: What each operator is called, and its parameters.
        back: Arcs that lead from a stream to what makes its own rows.
        inside: Of a stage that stands for several operators, their numbers.
        layer: The layer of each stage.
    """

    arcs: dict[tuple[Stage, Stage], None] = field(default_factory=dict)
    entries: dict[tuple[str, str], list[Stage]] = field(default_factory=dict)
    exits: dict[tuple[str, str], list[Stage]] = field(default_factory=dict)
    words: dict[Stage, tuple[str, str]] = field(default_factory=dict)
    back: set[tuple[Stage, Stage]] = field(default_factory=set)
    inside: dict[Stage, set[int]] = field(default_factory=dict)
    layer: dict[Stage, int] = field(default_factory=dict)


def lay_out(
    steps: Iterable[Steps], streams: Iterable[str], *, last: str | None = None, brief: bool = False
) -> Stages:
    """Put streams and the operators between them in layers.

    Args:
        steps: The operators between each pair of streams.
        streams: All streams.
        last: Where streams feed each other in a circle, the one that shall come last of them.
        brief: Show the operators of a query as one.
    """
    stages = Stages()
    between = {(each.sink, each.source): each for each in steps}
    # A stream that feeds itself is put in its layer by what else feeds it.
    for pair, each in sorted(between.items(), key=lambda item: item[0][0] == item[0][1]):
        arcs = _without_named(each, set(between))
        forth = set(stages.arcs)
        (_add_brief if brief else _add)(stages, pair, each, arcs)
        if pair[0] == pair[1]:
            stages.back |= {arc for arc in stages.arcs if arc[0] == Stage(pair[1])} - forth
    _layer(stages, [Stage(each) for each in streams], last)
    return stages


def _without_named(steps: Steps, pairs: set[tuple[str, str]]) -> set[_Arc]:
    """Leave out ways through a named frame whose own rows are drawn."""
    drawn = {
        number
        for number, kind in steps.kinds.items()
        if kind == "named"
        and (steps.sink, steps.labels[number]) in pairs
        and (steps.labels[number], steps.source) in pairs
    }
    arcs: set[_Arc] = {arc for arc in steps.arcs if not drawn.intersection(arc)}
    if not drawn:
        return arcs
    while True:
        # An operator that now reads nothing, or that nothing reads, was on those ways only.
        fed = {after for _, after in arcs} | {None}
        read = {before for before, _ in arcs} | {None}
        kept = {(one, other) for one, other in arcs if one in fed and other in read}
        if kept == arcs:
            return arcs
        arcs = kept


def _add(stages: Stages, pair: tuple[str, str], steps: Steps, arcs: set[_Arc]) -> None:
    sink, source = pair
    writer = steps.writer or sink
    if not steps.arcs or arcs == {(None, None)}:
        # Nothing is known of the way, or there is nothing on it: the query itself is the step.
        whole = Stage(writer, f"query/{sink}" if sink != writer else "query")
        stages.words[whole] = ("query", writer)
        _connect(stages, pair, Stage(source), whole)
        _connect(stages, pair, whole, Stage(sink))
        return
    for one, other in sorted(arcs, key=lambda arc: tuple(-1 if e is None else e for e in arc)):
        before, after = (None if n is None else Stage(writer, str(n), n) for n in (one, other))
        for number, stage in ((one, before), (other, after)):
            if number is not None and stage is not None:
                stages.words[stage] = (steps.kinds[number], steps.labels[number])
        _connect(stages, pair, before or Stage(source), after or Stage(sink))


def _add_brief(stages: Stages, pair: tuple[str, str], steps: Steps, arcs: set[_Arc]) -> None:
    if not arcs and steps.arcs:
        return
    sink, source = pair
    writer = steps.writer or sink
    whole = Stage(writer, "all" if sink == writer else f"all/{sink}")
    inside = stages.inside.setdefault(whole, set())
    inside.update(steps.kinds)
    stages.words[whole] = ("steps", f"{len(inside)} of them") if inside else ("query", writer)
    _connect(stages, pair, Stage(source), whole)
    _connect(stages, pair, whole, Stage(sink))


def _connect(stages: Stages, pair: tuple[str, str], one: Stage, other: Stage) -> None:
    stages.arcs[one, other] = None
    if one.step is None:
        stages.entries.setdefault(pair, []).append(other)
    if other.step is None:
        stages.exits.setdefault(pair, []).append(one)


def _layer(stages: Stages, streams: list[Stage], last_stream: str | None) -> None:
    every = dict.fromkeys([*streams, *(each for arc in stages.arcs for each in arc)])
    before: dict[Stage, set[Stage]] = {each: set() for each in every}
    for one, other in stages.arcs:
        if (one, other) not in stages.back:
            before[other].add(one)
    for each in _in_order(before, last_stream):
        done = [stages.layer[one] for one in before[each] if one in stages.layer]
        stages.layer[each] = max(done, default=-1) + 1
    last = max(stages.layer.values(), default=0)
    readers = {arc[0] for arc in stages.arcs if arc not in stages.back}
    for each in streams:
        if each not in readers and before[each]:
            stages.layer[each] = last


def _in_order(before: dict[Stage, set[Stage]], last: str | None) -> Iterator[Stage]:
    """Yield stages behind those that feed them; in a circle, the first by name breaks it."""

    def late(stage: Stage) -> tuple[bool, bool, Stage]:
        return stage.step is not None, stage.stream == last, stage

    left = dict(before)
    while left:
        ready = [each for each, feeds in left.items() if not feeds & left.keys()]
        for each in ready or [min(left, key=late)]:
            del left[each]
            yield each
