"""Leave out late rows when a stream is computed again as a table.

A stream drops rows that come too late, and which ones depends on when they came. When its source is
read again as a table, each row brings the watermark that its batch judged lateness by, in a hidden
column, up to the first step that keeps state; there the same rows are left out. What such a step
hands on is never late further down: Spark holds back each step's watermark by what the steps before
it may still emit. So the column ends there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.plan.algebra import LATE, Admission, Annotation, Capture, Move, left, right
from clew.plan.columns import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Field, Gathering, Groups, Origin, Related, Typed


class WithoutLate(Capture):
    """Another capture, over tables that stand for streams.

    Args:
        inner: The capture to add to.
        sources: The sources whose rows bring `LATE`.
        closed_us: The watermark that the stream closed windows with last; None to close them all.
    """

    def __init__(
        self, inner: Capture, sources: Sequence[str], closed_us: int | None = None
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._sources = frozenset(sources)
        self._closed_us = closed_us

    def enter(self, node: int) -> None:
        self._inner.enter(node)

    def admit(self, before: Annotation, time: str | None) -> Admission:
        if LATE not in before.columns:
            return Admission(before)
        if time is None:
            return Admission(_bare(before))
        micros = f"unix_micros(CAST({time} AS TIMESTAMP))"
        in_time = F.expr(f"{LATE} IS NULL OR {time} IS NULL OR {micros} > {LATE}")
        return Admission(_bare(before), in_time)

    def emitted(self, time: str) -> Column | None:
        if self._closed_us is None:
            return None
        return F.expr(f"unix_micros(CAST({time} AS TIMESTAMP)) <= {self._closed_us}")

    def at_source(self, origin: Origin) -> Move:
        move = self._inner.at_source(origin)
        return _marked(move) if origin.name in self._sources else move

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        return self._passed(self._inner.derive(_bare(before), by), before)

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        return self._inner.gather(_bare(before), groups)

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        return self._passed(self._inner.spread(_bare(before), partitions), before)

    def pair(self, first: Annotation, second: Annotation) -> Move:
        return self._joined(self._inner.pair(_bare(first), _bare(second)), first, second)

    def witness(self, first: Annotation, second: Annotation) -> Move:
        return self._joined(self._inner.witness(_bare(first), _bare(second)), first, second)

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        moves = self._inner.either(_bare(first), _bare(second))
        if LATE not in (*first.columns, *second.columns):
            return moves
        out = []
        for move, side in zip(moves, (first, second), strict=True):
            late = {} if LATE in side.columns else {LATE: F.lit(None).cast(T.LongType())}
            out.append(_marked(Move(move.annotation, (*move.steps, late))))
        return out[0], out[1]

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return self._passed(self._inner.mark(_bare(before), name, columns, time), before)

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        # Rows were admitted before, so none of the sides brings how late it is.
        return self._inner.relate(made)

    def pack(self, before: Annotation, groups: Groups | None = None) -> Column:
        text = self._inner.pack(_bare(before), groups)
        if LATE not in before.columns:
            return text
        return F.concat_ws(" ", F.coalesce(named(LATE).cast("string"), F.lit("-")), text)

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        if LATE not in before.columns:
            return self._inner.unpack(before, packed, by, groups)
        texts = F.transform(packed, lambda one: F.substring_index(one, " ", 1))
        rest = F.transform(packed, lambda one: F.substr(one, F.instr(one, " ") + 1))
        move = self._inner.unpack(_bare(before), rest, by, groups)
        late = F.array_max(F.transform(texts, lambda one: one.try_cast("bigint")))
        return _marked(Move(move.annotation, ({LATE: late}, *move.steps)))

    def assemble(
        self, before: Annotation, rows: DataFrame, packed: str, by: Sequence[Typed]
    ) -> Move:
        # What puts lists together keeps state, so no late rows are left here.
        return self._inner.assemble(before, rows, packed, by)

    def _passed(self, move: Move, before: Annotation) -> Move:
        return _marked(move) if LATE in before.columns else move

    def _joined(self, move: Move, first: Annotation, second: Annotation) -> Move:
        """A stream's row that met a table's is still as late as it was."""
        sides = [s for s, side in ((left, first), (right, second)) if LATE in side.columns]
        if not sides:
            return move
        lates = [named(side(LATE)) for side in sides]
        late = lates[0] if len(lates) == 1 else F.greatest(*lates)
        return _marked(Move(move.annotation, ({LATE: late}, *move.steps)))


def _marked(move: Move) -> Move:
    annotation = replace(move.annotation, columns=(*move.annotation.columns, LATE))
    return Move(annotation, move.steps)


def _bare(annotation: Annotation) -> Annotation:
    kept = tuple(c for c in annotation.columns if c != LATE)
    return replace(annotation, columns=kept)
