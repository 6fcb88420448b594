"""Capture `keys`: each row carries its own id and nothing else.

The thesis's event keys in the form that Spark allows. An id is made of what a row is made of, so
it is the same whenever the query is computed; and a result says by its own columns when it was. Its
ancestors are found afterwards: the operators between a result and its sources say how far back in
time they lie, that part is computed again, and the rows whose ids are known are picked out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.capture.intervals import IntervalsCapture, Spans
from clew.plan.algebra import Move
from clew.plan.columns import ID_A, ID_B

if TYPE_CHECKING:
    from clew.plan.algebra import Origin


class KeysCapture(IntervalsCapture):
    """Carry the row's own id; a span of no source at all."""

    name = "keys"

    def at_source(self, origin: Origin) -> Move:
        a, b, _ = origin.columns()
        after = Spans((ID_A, ID_B), origin.identity.unique, (origin.name,))
        return Move(after, ({ID_A: F.expr(a), ID_B: F.expr(b)},))


KEYS = KeysCapture()
