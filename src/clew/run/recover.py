"""Provenance of a query that carried none, from its checkpoint and its sources.

Everything that the query has emitted is computed again, with the rows behind it, as far as a
condition wants it, and put into a store. From there on it is answered like any other.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from clew.exceptions import CaptureRefusedError
from clew.operators.join import Join
from clew.run.describe import check_name, describe_streams
from clew.run.provenance import BatchJob
from clew.run.sink import NoSink
from clew.store.commit import make_store, put_stream
from clew.store.layout import store_root
from clew.unfold.arrivals import last_committed, read_arrivals
from clew.unfold.choose import Choice, choose
from clew.unfold.replay import replay_all
from clew.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import Column

    from clew.graph.node import Node


def recover(
    node: Node,
    path: str,
    *,
    name: str,
    checkpoint: str,
    where: Column | str | None = None,
) -> None:
    """Compute the provenance of a stream's results again, into a store.

    Raises:
        CaptureRefusedError: The query does not give the same results again.
        ReplayError: The checkpoint or the source no longer holds what is needed.
    """
    choose(node, "intervals")
    for each in node.walk():
        join = each.operator
        if isinstance(join, Join) and join.times is not None and join.how != "inner":
            why = "when an outer join of streams emits a row without a partner is not known"
            raise CaptureRefusedError("off", why)
    check_name(node, name)
    spark = node.plain.df.sparkSession
    last = last_committed(spark, checkpoint)
    rows = replay_all(node, read_arrivals(spark, checkpoint), last)
    if where is not None:
        rows = rows.filter(where)
    root = store_root(path)
    make_store(root, __version__)
    run = uuid.uuid4().hex[:8]
    choice = Choice("sets", "recovered from the checkpoint and the source")
    for stream in describe_streams(node, name, choice, run):
        put_stream(root, stream)
    job = BatchJob(
        root=str(root),
        writer=name,
        run=run,
        sink=NoSink(),
        skip_empty=False,
    )
    job(rows.localCheckpoint(eager=True), 0)
