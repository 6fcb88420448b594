"""Get a result ready to be run again without some of the rows behind it.

Where the rows of its trace are enough to make a result again, trials are over them alone. Where
they could be mistaken for those of other windows, trials are over the part of the sources that lies
around the result, as a replay is; it is read once and kept in memory meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from clew.again.around import around
from clew.again.cover import covers
from clew.again.reach import reach
from clew.again.repeat import check_trace, read_sources
from clew.again.rerun import changed_by, over_rows, suffices
from clew.again.trials import Trials
from clew.operators.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.again.cover import Cover
    from clew.again.trials import Member
    from clew.plan.node import Node
    from clew.store.reader import Snapshot


def prepare(
    snapshot: Snapshot,
    stream: str,
    node: Node,
    rows: Mapping[str, pa.Table],
    members: Sequence[Member],
    result: pa.Table,
) -> Trials:
    """Get a result ready for trials.

    Args:
        snapshot: The state of the store.
        stream: The stream of the result.
        node: The query.
        rows: The source rows behind it, by source.
        members: The same rows, in the order in which trials number them.
        result: The result's id and content.

    Raises:
        ReplayError: The query cannot be run again.
    """
    check_trace(snapshot, stream, node, rows)
    wanted = (result.column("_clew_a")[0].as_py(), result.column("_clew_b")[0].as_py())
    if suffices(node):
        return Trials(over_rows(node, rows), members, wanted)
    tables, closed = read_sources(snapshot, stream, node, _covers(node, result))
    held: list[DataFrame] = []

    def kept(df: DataFrame) -> DataFrame:
        held.append(df.persist())
        return held[-1]

    names = {n.operator.origin.name for n in node.walk() if isinstance(n.operator, Source)}
    tables = changed_by(tables, dict.fromkeys(names, kept))
    others = sum(each.count() for each in held)
    tables.refuse_changed()
    return Trials(tables, members, wanted, closed, others, tuple(held))


def _covers(node: Node, result: pa.Table) -> dict[str, Cover]:
    """Say which part of each source a result may come from; all of it where nothing says."""
    where = around(node)
    if where is None or where.column not in result.column_names:
        return {}
    spans = pa.table(where.spans(result.column(where.column)))
    return covers([spans], reach(node, whole=True))
