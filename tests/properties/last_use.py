"""For how long source rows take part in results, and who was called expired too early.

A row that is expired takes part in nothing more. The model says which rows are behind the results
of each micro-batch, so it knows the last batch that used a row, under any of Spark's free choices.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

from properties.model_rows import MILLI

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from properties.model_rows import MicroBatch, Model, Prov, Ref, Refs
    from properties.operator_tree import Spec
    from properties.row_form import Batches, Row


class Hold(Protocol):
    """What somebody says of how long a query holds the rows of a source.

    A row is expired once the watermark is more than `micros` beyond its event time, in whole
    milliseconds, where the row `waits` for it, and, where `by_arrival`, once it has been read.
    """

    @property
    def micros(self) -> int | None:
        """Microseconds; `None` if the row never expires."""

    @property
    def waits(self) -> bool:
        """Whether the watermark matters."""

    @property
    def by_arrival(self) -> bool:
        """Whether the row must have been read."""


def last_uses(model: Model) -> dict[Ref, int]:
    """Tell the last micro-batch in which each source row is, or may be, behind a result."""
    found: dict[Ref, int] = {}
    for batch in model.batches:
        found |= dict.fromkeys((r for row in batch.rows for r in possible(row.prov)), batch.number)
    return found


def possible(prov: Prov) -> Refs:
    """Name the source rows of all admissible answers."""
    options = itertools.chain.from_iterable(prov.one_of)
    several = itertools.chain.from_iterable(prov.some_of)
    return prov.fixed.union(*map(possible, options), *several)


def is_expired(hold: Hold, time: int | None, arrived: int, batch: MicroBatch) -> bool:
    """Tell whether a row is expired when a micro-batch is done.

    Args:
        hold: How the query holds it.
        time: Its event time.
        arrived: The micro-batch that reads it.
        batch: The micro-batch.
    """
    if hold.micros is None or (hold.by_arrival and arrived > batch.number):
        return False
    if not hold.waits:
        return True
    return time is not None and time <= batch.watermark_ms * MILLI - hold.micros - MILLI


def too_early(spec: Spec, data: Batches, model: Model, holds: Mapping[str, Hold]) -> list[str]:
    """Say which rows are called expired before a result that they are behind.

    Args:
        spec: The pipeline.
        data: Its micro-batches.
        model: What the model says of them.
        holds: How the query holds the rows of each source.
    """
    last, wrong = last_uses(model), []
    for ref, row, arrived in _arrivals(spec, data):
        used = last.get(ref, -1)
        for batch in model.batches[:used] if used > 0 else ():
            if is_expired(holds[ref[0]], row["ts"], arrived, batch):
                wrong.append(
                    f"{ref} at {row['ts']} is expired after batch {batch.number} "
                    f"(watermark {batch.watermark_ms} ms, {holds[ref[0]]}), used in {used}"
                )
                break
    return wrong


def expired_in_the_end(
    spec: Spec, data: Batches, model: Model, holds: Mapping[str, Hold]
) -> frozenset[Ref]:
    """Name the rows that are expired when the stream is over."""
    return frozenset(
        ref
        for ref, row, arrived in _arrivals(spec, data)
        if is_expired(holds[ref[0]], row["ts"], arrived, model.batches[-1])
    )


def _arrivals(spec: Spec, data: Batches) -> Iterator[tuple[Ref, Row, int]]:
    """List the rows of the streams with the micro-batches that read them."""
    for source in spec.sources:
        for number, rows in enumerate(data[source]):
            for row in rows:
                yield (source, row["rid"]), row, number
