"""Provenance of a query that carried none, from its checkpoint and its sources.

Everything that the query has emitted is computed again, with the rows behind it, as far as a
condition wants it, and put into a store. From there on it is answered like any other.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from clew.again.carried import repeating
from clew.again.choose import Choice, choose
from clew.again.describe import check_name, describe_streams
from clew.again.replay import replay_all
from clew.capture.kinds import SETS
from clew.exceptions import CaptureRefusedError
from clew.plan.mask import NOTHING
from clew.plan.node import with_secret
from clew.run.sink import NoSink
from clew.run.split import BatchJob
from clew.run.when import time_of_results
from clew.sources.arrivals import last_committed, read_arrivals
from clew.store.commit import make_store, planned_secret, put_stream, store_secret
from clew.store.layout import store_root
from clew.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import Column

    from clew.plan.node import Node


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
        pairing = each.operator.facts.pairing
        if pairing is not None and pairing.waits and pairing.drops_partners:
            why = "when an outer join of streams emits a row without a partner is not known"
            raise CaptureRefusedError("off", why)
    check_name(node, name)
    root = store_root(path)
    secret = planned_secret(root)
    node = with_secret(node, secret)
    spark = node.plain.df.sparkSession
    last = last_committed(spark, checkpoint)
    rows, tables = replay_all(node, read_arrivals(spark, checkpoint), last)
    if where is not None:
        rows = rows.filter(where)
    make_store(root, __version__, secret)
    if store_secret(root) != secret:
        # Another process has just made the store, with a secret of its own.
        recover(node, path, name=name, checkpoint=checkpoint, where=where)
        return
    run = uuid.uuid4().hex[:8]
    choice = Choice(SETS, "recovered from the checkpoint and the source")
    described = describe_streams(node, name, choice, run)
    time = time_of_results(node.schema, None, NOTHING)
    described[-1]["by_window"] = time is not None and time.is_window
    for stream in described:
        put_stream(root, stream)
    job = BatchJob(
        root=str(root),
        writer=name,
        run=run,
        sink=NoSink(),
        time=time,
        skip_empty=False,
        repeating=repeating(node),
        version=described[-1]["version"],
    )
    copy = rows.localCheckpoint(eager=True)
    tables.refuse_changed()
    job(copy, 0)
