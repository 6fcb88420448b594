"""The parameters that addresses share, each described once.

Everything stands in the query and nothing in the path, so names of streams may hold any character.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from fastapi.responses import JSONResponse

from clew.ask.provenance import Provenance

MAX_NODES = 200
"""How many nodes a drawing has at most."""
MAX_ROWS = 500
"""How many rows an answer or a page of rows has at most."""
SHOWN = 200
"""How many rows an answer has unless another number is asked for."""

_NAME = 1_000
_TEXT = 4_000


def opened(request: Request) -> Provenance:
    """Return the store that the app shows."""
    provenance: Provenance = request.app.state.provenance
    return provenance


Opened = Annotated[Provenance, Depends(opened)]
Direction = Annotated[
    Literal["backward", "forward"], Query(description="towards the sources, or the results")
]
StreamName = Annotated[str, Query(description="the stream of the row", max_length=_NAME)]
RowText = Annotated[
    str,
    Query(
        description="the row: its id (32 hexadecimal digits), `segment:position` of a source row, "
        "or `column=value[,column=value]` with enough columns to tell it apart",
        min_length=1,
        max_length=_TEXT,
    ),
]
Scope = Annotated[
    list[str] | None,
    Query(description="stop at these streams or named frames, and answer with their rows only"),
]
Intermediate = Annotated[
    bool, Query(description="answer with the rows of every stream and named frame on the way")
]
Limit = Annotated[int, Query(description="at most so many rows and edges", ge=1, le=MAX_ROWS)]


def answer(value: dict[str, Any]) -> JSONResponse:
    """Answer with plain data."""
    return JSONResponse(value)
