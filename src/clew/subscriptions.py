"""Property queries from the shell: run one, and say on the way how far it is.

Results go to standard output as JSON lines, to a table or to a topic. Nothing is stored; a
checkpoint, if one is named, lets the next run go on where this one ended.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import QueryError
from clew.run.subscribe import AsText, subscribe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from clew.plan.node import Node

    Target = str | Mapping[str, str] | None

_LOOK_EVERY = 1


@dataclass(slots=True)
class Delivery:
    """A property query on its way.

    Attributes:
        prop: The property.
        where: The condition.
        target: A table, options of Spark's Kafka sink, or None for standard output.
        once: End when all that is there is delivered.
        checkpoint: Where Spark keeps how far the delivery is.
        as_json: Report progress as JSON.
    """

    prop: str
    where: str | None = None
    target: Target = None
    once: bool = False
    checkpoint: str | None = None
    as_json: bool = False
    printed: int = 0
    _batch: int | None = field(default=None, repr=False)

    def run(self, node: Node) -> None:
        """Run the query until it ends; a continuous one ends when it is interrupted.

        Raises:
            PropertyError: There is no such property.
        """
        to = AsText(self._print) if self.target is None else self.target
        trigger = {"availableNow": True} if self.once else None
        query = subscribe(
            node,
            self.prop,
            where=self.where,
            to=to,
            checkpoint=self.checkpoint,
            trigger=trigger,
        )
        if query is not None:
            self._follow(query)
        if self.target is None:
            self._report({"results": self.printed})

    def _print(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        self.printed += 1

    def _follow(self, query: StreamingQuery) -> None:
        try:
            while not query.awaitTermination(_LOOK_EVERY):
                self._look(query)
            self._look(query)
        finally:
            sys.stdout.flush()
            if query.isActive:
                query.stop()

    def _look(self, query: StreamingQuery) -> None:
        sys.stdout.flush()
        progress = query.lastProgress
        if progress is None or progress.batchId == self._batch:
            return
        self._batch = progress.batchId
        said: dict[str, Any] = {"batch": progress.batchId, "rows": progress.numInputRows}
        watermark = progress.eventTime.get("watermark")
        self._report({**said, **({"watermark": watermark} if watermark else {})})

    def _report(self, said: Mapping[str, Any]) -> None:
        text = ", ".join(f"{key} {value}" for key, value in said.items())
        sys.stderr.write(f"{json.dumps(said) if self.as_json else text}\n")
        sys.stderr.flush()


def target_of(table: str | None, servers: str | None, topic: str | None) -> Target:
    """Read where results shall go.

    Raises:
        QueryError: A topic is named without servers, or the other way round.
    """
    if (servers is None) != (topic is None):
        msg = "`--to-kafka` and `--topic` go together: `--to-kafka localhost:9092 --topic alerts`."
        raise QueryError(msg)
    if servers is not None and topic is not None:
        return {"kafka.bootstrap.servers": servers, "topic": topic}
    return table
