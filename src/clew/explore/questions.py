"""Addresses that ask about a row: where it came from, what it did, and the answer as a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, StreamingResponse

from clew.exceptions import QueryError
from clew.explore.answers import (
    ComparisonAnswer,
    DrawingAnswer,
    ExpiryAnswer,
    ForwardAnswer,
    InfluenceAnswer,
    TimelineAnswer,
    TraceAnswer,
)
from clew.explore.failures import FAILURES, again_if_stale
from clew.explore.parameters import (
    MAX_NODES,
    SHOWN,
    Direction,
    Intermediate,
    Limit,
    Opened,
    RowText,
    Scope,
    StreamName,
    answer,
)
from clew.explore.traces import Traces
from clew.show.export import FORMS, MEDIA, encode, ending_of

if TYPE_CHECKING:
    from clew.ask.provenance import Provenance
    from clew.ask.trace import Trace

router = APIRouter(prefix="/api", tags=["rows"], responses=FAILURES)


_TRACES = Traces()
_FILES: dict[str, Any] = {
    "description": "the file",
    "content": {each.partition(";")[0]: {} for each in MEDIA.values()},
}


@router.get("/backward", response_model=TraceAnswer)
def backward(
    provenance: Opened,
    stream: StreamName,
    row: RowText,
    scope: Scope = None,
    intermediate: Intermediate = False,
    limit: Limit = SHOWN,
) -> JSONResponse:
    """Find the rows that a row was made from."""
    return answer(trace_of(provenance, "backward", stream, row, scope, intermediate).to_dict(limit))


@router.get("/forward", response_model=ForwardAnswer)
def forward(
    provenance: Opened,
    stream: StreamName,
    row: RowText,
    scope: Scope = None,
    intermediate: Intermediate = False,
    limit: Limit = SHOWN,
) -> JSONResponse:
    """Find the results that a row took part in, so far."""
    return answer(trace_of(provenance, "forward", stream, row, scope, intermediate).to_dict(limit))


@router.get("/status", response_model=ExpiryAnswer)
def status(provenance: Opened, stream: StreamName, row: RowText) -> JSONResponse:
    """Say whether a row may still take part in results, and until when."""
    return answer(again_if_stale(lambda: provenance.expiry(stream, row).to_dict()))


@router.get("/drawing", response_model=DrawingAnswer)
def drawing(
    provenance: Opened,
    direction: Direction,
    stream: StreamName,
    row: RowText,
    scope: Scope = None,
    intermediate: Intermediate = False,
    depth: Annotated[int | None, Query(description="so many hops at most", ge=1, le=1_000)] = None,
    limit: Annotated[
        int, Query(description="at most so many nodes", ge=1, le=MAX_NODES)
    ] = MAX_NODES,
    expand: Annotated[list[str] | None, Query(description="keys of groups to show more of")] = None,
) -> JSONResponse:
    """Draw an answer in layers, in the direction in which rows travel."""
    trace = trace_of(provenance, direction, stream, row, scope, intermediate)
    drawn = again_if_stale(lambda: trace.drawing(limit=limit, depth=depth, expand=expand or ()))
    return answer(drawn.to_dict())


@router.get("/timeline", response_model=TimelineAnswer)
def timeline(
    provenance: Opened,
    stream: StreamName,
    row: RowText,
    direction: Direction = "backward",
    scope: Scope = None,
    intermediate: Intermediate = False,
    limit: Annotated[int, Query(description="rows of a stream, at most", ge=0, le=500)] = 100,
) -> JSONResponse:
    """Put the rows of an answer on a time axis, with the windows of its results."""
    trace = trace_of(provenance, direction, stream, row, scope, intermediate)
    return answer(again_if_stale(lambda: trace.timeline(limit).to_dict()))


@router.get("/influence", response_model=InfluenceAnswer)
def influence(
    provenance: Opened,
    stream: StreamName,
    row: RowText,
    column: Annotated[
        str | None, Query(description="the column of the result", max_length=1_000)
    ] = None,
    value: Annotated[
        str | None, Query(description="the column of the source rows", max_length=1_000)
    ] = None,
    limit: Limit = SHOWN,
) -> JSONResponse:
    """Rank the source rows of a result by how much of its value they carry."""
    # A page asks for this by itself: Spark is not started for it.
    trace = trace_of(provenance, "backward", stream, row, None, intermediate=False)
    found = again_if_stale(lambda: trace.influence(column, value, replay=False))
    return answer(found.to_dict(limit))


@router.get("/compare", response_model=ComparisonAnswer)
def compare(
    provenance: Opened,
    stream: StreamName,
    row: RowText,
    other: Annotated[str, Query(description="the other row", min_length=1, max_length=4_000)],
    limit: Limit = SHOWN,
) -> JSONResponse:
    """Compare two results by the source rows behind them."""
    found = again_if_stale(lambda: provenance.compare(stream, row, other))
    return answer(found.to_dict(limit))


@router.get("/export", response_class=StreamingResponse, responses={200: _FILES})
def export(
    provenance: Opened,
    direction: Direction,
    stream: StreamName,
    row: RowText,
    form: Annotated[str, Query(alias="format", description=f"one of {', '.join(FORMS)}")],
    scope: Scope = None,
    intermediate: Intermediate = False,
) -> StreamingResponse:
    """Return the whole answer as a file for other tools."""
    if form not in FORMS:
        msg = f"an answer cannot be written as `{form}`.\n\nThe forms are: {', '.join(FORMS)}."
        raise QueryError(msg)
    trace = trace_of(provenance, direction, stream, row, scope, intermediate)
    pieces = again_if_stale(lambda: encode(trace, form))
    headers = {"Content-Disposition": _attachment(direction, stream, ending_of(form))}
    return StreamingResponse(pieces, media_type=MEDIA[form], headers=headers)


def trace_of(
    provenance: Provenance,
    direction: str,
    stream: str,
    row: str,
    scope: list[str] | None,
    intermediate: bool,
) -> Trace:
    """Ask for a trace."""
    ask = provenance.backward if direction == "backward" else provenance.forward
    key = (provenance.path, direction, stream, row, tuple(scope or ()), intermediate)

    def asked() -> Trace:
        state = provenance.about().state
        return _TRACES.get(
            (state, *key), lambda: ask(stream, row, scope or None, intermediate=intermediate)
        )

    return again_if_stale(asked)


def _attachment(direction: str, stream: str, ending: str) -> str:
    """Name a file after what is in it, in letters that every system takes."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", stream).strip("-.") or "rows"
    full = quote(f"{stream}-{direction}{ending}".replace("/", "-"), safe="")
    return f"attachment; filename=\"{plain[:80]}-{direction}{ending}\"; filename*=UTF-8''{full}"
