"""No capture: the user's own query and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.plan.algebra import Annotation, Capture, Gathering, Move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Field, Groups, Origin, Related, Typed

_NOTHING = Annotation()


class Off(Capture):
    """Carry nothing: every move leads to no hidden column at all."""

    name = "off"

    def at_source(self, origin: Origin) -> Move:
        return Move(_NOTHING)

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        return Move(_NOTHING)

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        return Gathering({}, Move(_NOTHING))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        return Move(_NOTHING)

    def pair(self, first: Annotation, second: Annotation) -> Move:
        return Move(_NOTHING)

    def witness(self, first: Annotation, second: Annotation) -> Move:
        return Move(_NOTHING)

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        return Move(_NOTHING), Move(_NOTHING)

    def mark(
        self,
        before: Annotation,
        name: str,
        columns: Sequence[Field],
        time: str | None,
    ) -> Move:
        return Move(_NOTHING)

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        return made.rows, _NOTHING

    def pack(self, before: Annotation, groups: Groups | None = None) -> Column:
        return F.lit("")

    def unpack(
        self,
        before: Annotation,
        packed: Column,
        by: Sequence[Typed],
        groups: Groups | None = None,
    ) -> Move:
        return Move(_NOTHING)


OFF = Off()
