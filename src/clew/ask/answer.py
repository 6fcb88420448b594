"""From the edges that were followed to an answer: content, exactness, status, what is missing."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from clew.ask.content import Question, fetch
from clew.ask.expires import first_expiries
from clew.ask.find import why_not_found
from clew.ask.path import paths, steps_between
from clew.ask.row import Content, Rows
from clew.ask.trace import Trace
from clew.exceptions import RowNotFoundError
from clew.expiry.status import status_of
from clew.model import GapKind
from clew.store.records import Gap, worst

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clew.ask.scope import Direction, Route
    from clew.ask.trace import Look
    from clew.ask.walk import Reached, Walk
    from clew.model import Exactness, Status
    from clew.store.records import Batch


def answer(
    question: Question,
    route: Route,
    stream: str,
    start: pa.Table,
    walked: Walk,
    began: float,
    look: Look | None = None,
) -> Trace:
    """Put together what a walk found, with the content of its rows.

    Args:
        question: The state of the store.
        route: The streams that were passed.
        stream: The stream of the rows asked about.
        start: Their ids.
        walked: What was found.
        began: When the question was asked.
        look: Looks up the content of rows on the way, once somebody wants to see them.
    """
    asked = _start(question, route, stream, start, walked)
    ends = [_end(question, *each) for each in sorted(walked.ends.items())]
    mixed = _mixed(question, [asked, *ends], walked)
    return Trace(
        direction=route.direction,
        stream=stream,
        start=Rows([asked]),
        rows=Rows(ends),
        path=paths(question.snapshot, walked.passed),
        exactness=worst([_exactness(question, walked), "coarse" if mixed else None]),
        gaps=tuple(sorted({*walked.gaps, *mixed})),
        seconds=time.perf_counter() - began,
        scope=_scope(route),
        _tables=tuple(walked.hops),
        status=_status(question, route, asked, ends),
        runs=tuple(sorted({(each.writer, each.run) for each in walked.batches})),
        batches=tuple(sorted(walked.batches, key=lambda each: (each.writer, each.order))),
        steps=steps_between(question.snapshot, walked.passed),
        _look=look,
        _when=partial(first_expiries, question),
    )


def _mixed(question: Question, contents: Sequence[Content], walked: Walk) -> set[Gap]:
    """Name the batches that hold different rows under one id: which is meant cannot be told."""
    gaps = set()
    for each in (one for one in contents if one.unlike):
        identity = question.snapshot.streams[each.stream].identity or {}
        by = ", ".join(identity.get("keys") or ()) or identity.get("kind", "its id")
        count = "1 id" if each.unlike == 1 else f"{each.unlike} ids"
        why = (
            f"{count} of `{each.stream}` (by {by}) stand for several rows that differ, so which of "
            "them a result came from is not known"
        )
        for batch in walked.batches:
            if each.stream in batch.row_files:
                last = batch.number if batch.last is None else batch.last
                at = (batch.writer, batch.run, batch.number, last)
                gaps.add(Gap(*at, GapKind.ONE_ID, why))
    return gaps


def _status(question: Question, route: Route, asked: Content, ends: list[Content]) -> Status | None:
    """Say whether results may follow, from the rows asked about or through those they led to."""
    if route.direction == "backward" or question.snapshot.is_named(asked.stream):
        return None
    known = [each for each in ends if not question.snapshot.is_named(each.stream)]
    return status_of(question, [asked, *known])


def lacking_edges(
    question: Question, direction: Direction, stream: str, walked: Walk
) -> dict[str, pa.Table | None]:
    """Name the streams whose edges are still to be computed, with the rows that need them.

    Forward any row may: then all pointers are unfolded, and intervals are left as a gap, since
    computing all of them is not what a question should do by itself.
    """
    if direction == "forward":
        return {g.writer: None for g in walked.gaps if g.kind is GapKind.NOT_UNFOLDED}
    lazy = {gap.writer for gap in walked.gaps if gap.kind.is_pending}
    lacking: dict[str, pa.Table | None] = {}
    for writer in lazy:
        if writer == stream and walked.lost.num_rows:
            if not question.snapshot.streams[stream].keeps_rows:
                lacking[writer] = walked.lost
                continue
            known = fetch(question, stream, walked.lost)
            if all(row.known for row in Rows([known])):
                lacking[writer] = _still_there(question, writer, walked.lost)
        elif writer in walked.ends:
            ids = pa.concat_tables(walked.ends[writer].ids)
            lacking[writer] = _still_there(question, writer, ids)
    return {w: ids for w, ids in lacking.items() if ids is None or ids.num_rows}


def _still_there(question: Question, writer: str, ids: pa.Table) -> pa.Table:
    """Leave out rows whose batches were pruned: nothing is left to compute their edges from."""
    if not any(gap.is_pruned for gap in question.snapshot.gaps(writer)):
        return ids
    relation = question.rows_of(writer, question.snapshot.batches[writer])
    if relation is None:
        return ids.slice(0, 0)
    question.session.register("doubtful", ids)
    return question.session.table(
        f"SELECT d.* FROM doubtful d SEMI JOIN {relation.sql} r "
        "ON r._clew_a = d.a AND r._clew_b = d.b",
        relation.params,
    )


def _scope(route: Route) -> tuple[str, ...] | None:
    return None if route.ends is None else tuple(sorted(route.ends))


def _start(question: Question, route: Route, stream: str, start: pa.Table, walked: Walk) -> Content:
    """Look up the rows asked about; refuse a derived row that the store has never seen."""
    if route.direction == "backward" and route.ends is None:
        content = fetch(question, stream, start, walked.first or None)  # all edges were found
    else:
        content = content_of(question, stream, start, walked.first)
    if question.snapshot.writer(stream) is not None and walked.lost.num_rows:
        lost = set(zip(*(walked.lost.column(name).to_pylist() for name in "ab"), strict=True))
        refuse_unknown(question, content, lost)
    return content


def refuse_unknown(
    question: Question, content: Content, only: set[tuple[int, int]] | None = None
) -> None:
    """Refuse a row that the store has never seen, of all or of some."""
    for row in Rows([content]):
        if not row.known and (only is None or (row.id.a, row.id.b) in only):
            why = why_not_found(question, content.stream)
            raise RowNotFoundError(content.stream, f"`{row.id.text}`", why)


def _end(question: Question, stream: str, reached: Reached) -> Content:
    ids = pa.concat_tables(reached.ids)
    if len(reached.ids) > 1:
        ids = ids.group_by(ids.column_names).aggregate([])
    return content_of(question, stream, ids, reached.batches)


def content_of(
    question: Question, stream: str, ids: pa.Table, among: Collection[Batch] = ()
) -> Content:
    """Look up the content of rows, first in the batches that are likely to hold it.

    The copies of a source row are equal, so the batches of its edges will do. A derived row may
    have been written again, with other content: every batch with edges of it counts.
    """
    if question.snapshot.writer(stream) is not None:
        among = question.batches_of(stream, ids)
    return fetch(question, stream, ids, among or None)


def _exactness(question: Question, walked: Walk) -> Exactness:
    streams = question.snapshot.streams
    labels: list[str | None] = []
    for (sink, source), versions in walked.passed.items():
        for each in (sink, source):
            record = streams.get(each)
            if record is not None:
                labels += [record.in_version(v).exactness for v in versions]
                labels.append((record.identity or {}).get("label"))
    return worst(labels)
