"""Addresses about the store as a whole: what it is, its streams, their rows."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from clew.explore.answers import FlowAnswer, RowsAnswer, StoreAnswer, StreamsAnswer
from clew.explore.failures import FAILURES, RefusedError, again_if_stale
from clew.explore.parameters import MAX_ROWS, Opened, StreamName, answer

router = APIRouter(prefix="/api", tags=["store"], responses=FAILURES)

_Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]


@router.get("/store", response_model=StoreAnswer)
def store(provenance: Opened) -> JSONResponse:
    """Say what the store is, how much it holds, and which state of it this is."""
    return answer(again_if_stale(lambda: provenance.about().to_dict()))


@router.get("/streams", response_model=StreamsAnswer)
def streams(provenance: Opened) -> JSONResponse:
    """List the streams, with what is committed of each."""
    return answer({"streams": [each.to_dict() for each in again_if_stale(provenance.streams)]})


@router.get("/flow", response_model=FlowAnswer)
def flow(provenance: Opened) -> JSONResponse:
    """Return the queries of the store as one flow of sources, steps and sinks."""
    return answer(again_if_stale(lambda: provenance.flow().to_dict()))


@router.get("/rows", response_model=RowsAnswer)
def rows(
    provenance: Opened,
    stream: StreamName,
    column: Annotated[list[str] | None, Query(description="columns to compare")] = None,
    op: Annotated[list[_Operator] | None, Query(description="a comparison for each")] = None,
    value: Annotated[
        list[str] | None,
        Query(description="a value for each; `null` is null, quotes are taken off"),
    ] = None,
    since: Annotated[
        str | None, Query(alias="from", description="the earliest event time", max_length=100)
    ] = None,
    until: Annotated[
        str | None, Query(alias="to", description="the latest event time", max_length=100)
    ] = None,
    id: Annotated[
        str | None, Query(description="how an id begins, or `segment:position`", max_length=4_000)
    ] = None,
    text: Annotated[str | None, Query(description="text in any column", max_length=1_000)] = None,
    order_by: Annotated[
        str | None, Query(description="a column; time if left out", max_length=1_000)
    ] = None,
    descending: Annotated[bool, Query(description="the other way round")] = False,
    limit: Annotated[int, Query(description="rows on a page", ge=1, le=MAX_ROWS)] = 50,
    offset: Annotated[int, Query(description="rows before the page", ge=0, le=1 << 40)] = 0,
) -> JSONResponse:
    """Find rows of a stream: a page of those that match, and how many there are."""
    columns, ops, values = column or [], op or [], value or []
    if not len(columns) == len(ops) == len(values):
        text = (
            f"{len(columns)} `column`, {len(ops)} `op` and {len(values)} `value` were given.\n\n"
            "Give as many of each."
        )
        raise RefusedError(422, "bad_parameter", text)
    filters = list(zip(columns, ops, values, strict=True))
    found = again_if_stale(
        lambda: provenance.rows(
            stream,
            limit=limit,
            filters=filters,
            since=since,
            until=until,
            id=id,
            text=text,
            sort=order_by,
            descending=descending,
            offset=offset,
        )
    )
    return answer(found.to_dict())
