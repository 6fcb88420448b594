"""Run a query of a store again: all of it, a period, or what is behind some results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.again.around import around
from clew.again.describe import Likeness
from clew.again.differences import Compared, compare
from clew.again.held import Held
from clew.again.rerun import Period, changed_by, over_rows, results_of, stored_results, suffices
from clew.again.tables import as_tables
from clew.exceptions import ReplayError
from clew.operators.source import Source
from clew.sources.arrivals import kept_offsets, noted_tables, read_arrivals
from clew.store.commit import read_stream
from clew.store.versions import said_of, versions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clew.again.cover import Cover, Span
    from clew.again.tables import Tables
    from clew.plan.node import Node
    from clew.store.reader import Snapshot


def rerun(
    snapshot: Snapshot,
    stream: str,
    node: Node,
    span: Span | None,
    what_if: Mapping[str, Callable[[DataFrame], DataFrame]] | None,
    tolerance: float,
) -> Compared:
    """Compute the results of a stream again, over its sources or over changed ones, and compare.

    Args:
        snapshot: The state of the store.
        stream: The results.
        node: The query.
        span: Only results of this period.
        what_if: How the rows of sources are changed.
        tolerance: By how much floating-point numbers may differ.

    Raises:
        ReplayError: It is another query than the one that ran, or it ran several times.
    """
    _check_one_version(snapshot, stream)
    _check_same(snapshot.root, stream, node)
    where = None if span is None else around(node)
    period = None if span is None or where is None else Period(span, where)
    covers = {} if period is None else period.covers(node)
    tables, closed = read_sources(snapshot, stream, node, covers)
    if what_if is None:
        _need_rows(snapshot, stream)
        before = stored_results(node, _files(snapshot, stream))
    else:
        before = results_of(tables, closed)
        tables = changed_by(tables, what_if)
    after = results_of(tables, closed)
    if what_if is None and any(n.operator.facts.by_condition for n in node.walk()):
        # Which results a function of the user's still holds back, only the function knows.
        after = after.join(before.select("a", "b"), ["a", "b"], "left_semi")
    if period is not None:
        before, after = period.keep(before), period.keep(after)
    return _compared(before, after, tolerance, tables)


def rerun_rows(
    snapshot: Snapshot,
    stream: str,
    node: Node,
    rows: Mapping[str, pa.Table],
    ids: Sequence[tuple[int, int]],
    tolerance: float,
) -> Compared:
    """Make some results again from the source rows behind them, and compare.

    Where the rows alone could be mistaken for those of other windows, the sources are read instead.

    Args:
        snapshot: The state of the store.
        stream: The results.
        node: The query.
        rows: The source rows, by source.
        ids: The results.
        tolerance: By how much floating-point numbers may differ.

    Raises:
        ReplayError: It is another query than the one that ran.
    """
    check_trace(snapshot, stream, node, rows)
    tables, closed = over_rows(node, rows), None
    if not suffices(node):
        tables, closed = read_sources(snapshot, stream, node, {})
    after = results_of(tables, closed)
    spark = node.plain.df.sparkSession
    wanted = F.broadcast(spark.createDataFrame(list(ids), "a bigint, b bigint").dropDuplicates())
    found = after.join(wanted, ["a", "b"])
    if not snapshot.streams[stream].keeps_rows:
        # Only keys are kept. An id is made of what a row is made of, so it tells whether it is
        # the same row, and not whether it holds the same.
        bare = found.select("a", "b", F.struct("a", "b").alias("row"))
        keys = wanted.select("a", "b", F.struct("a", "b").alias("row"))
        return _compared(keys, bare, tolerance, tables)
    before = stored_results(node, _files(snapshot, stream))
    return _compared(before.join(wanted, ["a", "b"]), found, tolerance, tables)


def _compared(before: DataFrame, after: DataFrame, tolerance: float, tables: Tables) -> Compared:
    """Compare, unless a source has changed meanwhile: that is not the query's doing."""
    try:
        found = compare(before, after, tolerance)
    except Exception:
        tables.refuse_changed()  # which explains more than what it led to
        raise
    tables.refuse_changed()
    return found


def check_trace(snapshot: Snapshot, stream: str, node: Node, rows: Mapping[str, pa.Table]) -> None:
    """Refuse a trace that a query cannot be run again from.

    Raises:
        ReplayError: It is another query than the one that ran, or the trace ends elsewhere.
    """
    _check_same(snapshot.root, stream, node)
    own = {n.operator.origin.name for n in node.walk() if isinstance(n.operator, Source)}
    strange = sorted(set(rows) - own)
    if strange:
        msg = (
            f"the trace ends at `{strange[0]}`, which is no source of the query that fills "
            f"`{stream}`.\n\nAsk for the query's own sources: `prov.backward(..., scope=["
            f"{', '.join(repr(each) for each in sorted(own))}])`."
        )
        raise ReplayError(msg)


def _need_rows(snapshot: Snapshot, stream: str) -> None:
    """Refuse to compare with results of which only keys are kept."""
    if not snapshot.streams[stream].keeps_rows:
        msg = (
            f"the store keeps keys of `{stream}` and not what its rows hold, so there is nothing "
            "to compare all of them with.\n\nReplay a trace of it, or changed rows with "
            '`what_if=`; or run the query with `content="all"`.'
        )
        raise ReplayError(msg)


def read_sources(
    snapshot: Snapshot, stream: str, node: Node, covers: Mapping[str, Cover]
) -> tuple[Tables, int | None]:
    """Read the sources again as the last run read them; also return how far it closed windows.

    Raises:
        ReplayError: A source cannot be read again, or there were several runs.
    """
    _check_readable(stream, node)
    runs = (read_stream(snapshot.root, stream) or {}).get("runs", [])
    if len(runs) > 1 and node.plain.df.isStreaming:
        msg = (
            f"`{stream}` was filled by {len(runs)} runs with checkpoints of their own, which may "
            "have read the same rows.\n\nReplay a trace of it instead: `prov.replay(trace)`."
        )
        raise ReplayError(msg)
    checkpoint = runs[-1].get("checkpoint") if runs else None
    held = _held(snapshot, stream)
    if checkpoint is None:
        return as_tables(node, covers, held=held), None
    run = runs[-1]["run"]
    spark = node.plain.df.sparkSession
    arrivals = read_arrivals(spark, checkpoint, kept_offsets(snapshot.root, stream, run))
    last = max((b.number for b in snapshot.batches.get(stream, ()) if b.run == run), default=None)
    closed = None if last is None else arrivals.batches[last].watermark_ms * 1000
    return as_tables(node, covers, arrivals, last, held=held), closed


def _held(snapshot: Snapshot, stream: str) -> Held:
    """Say what the tables held in the batches that are in the store."""
    noted: dict[int, Mapping[str, dict[str, Any]]] = {}
    batches = [each for each in snapshot.batches.get(stream, ()) if each.gap is None]
    for number, each in enumerate(sorted(batches, key=lambda each: (each.run, each.number))):
        # Runs over tables have one batch each, with the same number.
        at = each.number if len({one.run for one in batches}) == 1 else number
        said = noted_tables(snapshot.root, stream, each.run)
        noted[at] = said.get(each.number, {})
    return Held(noted, noted.keys())


def _check_readable(stream: str, node: Node) -> None:
    """Refuse to read sources again of which nothing says how."""
    for each in node.walk():
        source = each.operator
        if isinstance(source, Source) and isinstance(source.again, str):
            name = source.origin.name
            msg = (
                f"`{name}`, a source of `{stream}`, cannot be read again: {source.again}.\n\n"
                "Replay a trace instead, `prov.replay(trace)`, which needs no source; or hand in a "
                f'pipeline that can read it: `clew.trace(df, "{name}", again=table)`.'
            )
            raise ReplayError(msg)


def _files(snapshot: Snapshot, stream: str) -> Sequence[str]:
    """List the files with a stream's rows that its own query wrote; others may keep copies."""
    return snapshot.row_files(stream, snapshot.batches.get(stream, ())).paths


def _check_one_version(snapshot: Snapshot, stream: str) -> None:
    """Refuse to compare results of several versions of a query with those of one."""
    said = read_stream(snapshot.root, stream) or {}
    batches = [each for each in snapshot.batches.get(stream, ()) if each.sink_rows != 0]
    made_by = {(said_of(said, each.version) or {}).get("meaning") for each in batches}
    if len(made_by) > 1:
        msg = (
            f"`{stream}` was filled by {len(made_by)} versions of its query, so no one of them "
            "makes all of its results again.\n\nReplay a trace of it instead: "
            "`prov.replay(trace)`."
        )
        raise ReplayError(msg)


def _check_same(root: Path, stream: str, node: Node) -> None:
    """Refuse a pipeline that is not the one that ran."""
    said = read_stream(root, stream) or {}
    known = [said_of(said, version) or {} for version in versions_of(said)]
    ran, likeness = [each for each in known if each.get("shape")], Likeness(node)
    if ran and not any(likeness.fits(each) for each in ran):
        msg = (
            f"the pipeline at hand is not the one that filled `{stream}`: its operators, "
            "parameters or columns differ, so its results would, too.\n\nHand in the version that "
            "ran, or run the new one with `what_if` in a store of its own."
        )
        raise ReplayError(msg)
