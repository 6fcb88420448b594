"""No capture: the user's own query and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.capture.algebra import Annotation, Capture, Gathering, Move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column
    from clew.capture.algebra import Field, Origin, Typed

_NOTHING = Annotation()


class Off(Capture):
    """Carry nothing: every move leads to no hidden column at all."""

    name = "off"

    def at_source(self, origin: Origin) -> Move:  # noqa: ARG002
        return Move(_NOTHING)

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:  # noqa: ARG002
        return Move(_NOTHING)

    def gather(self, before: Annotation, keys: Sequence[Typed]) -> Gathering:  # noqa: ARG002
        return Gathering({}, Move(_NOTHING))

    def spread(self, before: Annotation, partition: Sequence[Column]) -> Move:  # noqa: ARG002
        return Move(_NOTHING)

    def pair(self, first: Annotation, second: Annotation) -> Move:  # noqa: ARG002
        return Move(_NOTHING)

    def witness(self, first: Annotation, second: Annotation) -> Move:  # noqa: ARG002
        return Move(_NOTHING)

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:  # noqa: ARG002
        return Move(_NOTHING), Move(_NOTHING)

    def mark(
        self,
        before: Annotation,  # noqa: ARG002
        name: str,  # noqa: ARG002
        columns: Sequence[Field],  # noqa: ARG002
        time: str | None,  # noqa: ARG002
    ) -> Move:
        return Move(_NOTHING)

    def pack(self, before: Annotation) -> Column:  # noqa: ARG002
        return F.lit("")

    def unpack(
        self,
        before: Annotation,  # noqa: ARG002
        packed: Column,  # noqa: ARG002
        by: Sequence[Typed],  # noqa: ARG002
    ) -> Move:
        return Move(_NOTHING)


OFF = Off()
