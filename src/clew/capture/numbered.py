"""Several runs of one query in one plan: each row also carries the number of its run.

To find out which rows a result needs, a query is run over many sets of rows. One Spark job for each
would cost a plan and a start each time, so the sets go through together. The number of the run is
part of the annotation, and steps that put rows together do so within a run only; the groups of an
aggregation get it as their first key, which is taken off again before an id is made of the keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.plan.algebra import Admission, Capture, Gathering, Move
from clew.plan.columns import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Annotation, Field, Groups, Origin, Related, Typed

TRIAL = "_clew_trial"
"""The number of the run that a row belongs to."""


class InTrials(Capture):
    """Another capture, over rows that bring the number of their run."""

    def __init__(self, inner: Capture) -> None:
        self.name = inner.name
        self._inner = inner

    def enter(self, node: int) -> None:
        self._inner.enter(node)

    def admit(self, before: Annotation, time: str | None) -> Admission:
        inside = self._inner.admit(_bare(before), time)
        return Admission(_numbered(inside.annotation), inside.condition)

    def emitted(self, time: str) -> Column | None:
        return self._inner.emitted(time)

    def at_source(self, origin: Origin) -> Move:
        return _marked(self._inner.at_source(origin))

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        return _marked(self._inner.derive(_bare(before), by))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        keys = [(key, kind) for key, kind in groups.keys if key != quote(TRIAL)]
        inside = self._inner.gather(_bare(before), replace(groups, keys=keys))
        return Gathering(inside.aggregates, _marked(inside.after))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        return _marked(self._inner.spread(_bare(before), partitions))

    def pair(self, first: Annotation, second: Annotation) -> Move:
        return _marked(self._inner.pair(_bare(first), _bare(second)))

    def witness(self, first: Annotation, second: Annotation) -> Move:
        return _marked(self._inner.witness(_bare(first), _bare(second)))

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        one, other = self._inner.either(_bare(first), _bare(second))
        return _marked(one), _marked(other)

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return _marked(self._inner.mark(_bare(before), name, columns, time))

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        msg = "the number of a run does not travel through a function"
        raise NotImplementedError(msg)

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        msg = "the number of a run does not travel through a function"
        raise NotImplementedError(msg)


def _marked(move: Move) -> Move:
    return Move(_numbered(move.annotation), move.steps)


def _numbered(annotation: Annotation) -> Annotation:
    return replace(annotation, columns=(*annotation.columns, TRIAL))


def _bare(annotation: Annotation) -> Annotation:
    kept = tuple(c for c in annotation.columns if c != TRIAL)
    return replace(annotation, columns=kept)
