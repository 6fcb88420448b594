"""From the errors of the library to answers with a status and a reason.

Every error of clew says what happened and, after an empty line, what to do: the first part becomes
`message`, the rest `hint`. What nobody foresaw is answered without its text, which could hold what
stands in rows, and logged by its kind and place alone.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from clew.exceptions import (
    ClewError,
    LimitError,
    NotAStoreError,
    QueryError,
    ReplayError,
    RowNotFoundError,
    StoreChangedError,
    StoreError,
    UnknownStreamError,
)
from clew.explore.answers import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI, Request

_LOG = logging.getLogger("clew.explore")
_T = TypeVar("_T")
_ATTEMPTS = 5

KINDS: tuple[tuple[type[ClewError], int, str], ...] = (
    (UnknownStreamError, 404, "unknown_stream"),
    (RowNotFoundError, 404, "unknown_row"),
    (LimitError, 503, "limit"),
    (ReplayError, 409, "cannot_compute"),
    (QueryError, 400, "bad_question"),
    (StoreChangedError, 409, "stale"),
    (NotAStoreError, 409, "store_gone"),
    (StoreError, 503, "store_unreadable"),
    (ClewError, 400, "refused"),
)
"""Errors with their status and code, the narrower ones first."""

_MEANINGS = {
    400: "the question cannot be answered as it is asked",
    401: "the token is missing or wrong",
    403: "the request comes from somewhere else",
    404: "there is no such stream, row or job",
    405: "this address takes other methods",
    409: "the store changed while it was read, or cannot answer this now",
    422: "a parameter is missing or has a form that it cannot have",
    503: "a file of the store cannot be read, or the question takes more than it may",
}

FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failed, "description": text} for status, text in _MEANINGS.items()
}
"""What the description says of every address."""


class RefusedError(ClewError):
    """A request that is refused before the store is asked.

    Attributes:
        status: The status of the answer.
        code: A word for programs.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


def failure(status: int, code: str, text: str) -> JSONResponse:
    """Answer with an error; what follows an empty line in its text is the hint."""
    return JSONResponse({"error": _said(code, text)}, status)


def error_of(error: ClewError) -> dict[str, Any]:
    """Return an error of clew as plain data."""
    return _said(_kind(error)[1], str(error))


def of_error(error: ClewError) -> JSONResponse:
    """Answer with an error of clew."""
    return failure(*_kind(error), str(error))


def _said(code: str, text: str) -> dict[str, Any]:
    message, _, hint = text.partition("\n\n")
    return {"code": code, "message": message, "hint": hint or None}


def _kind(error: ClewError) -> tuple[int, str]:
    if isinstance(error, RefusedError):
        return error.status, error.code
    return next((status, code) for kind, status, code in KINDS if isinstance(error, kind))


def unforeseen(error: Exception) -> JSONResponse:
    """Answer with, and log, an error that nobody foresaw."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "nowhere"
    _LOG.error("%s at %s", type(error).__name__, place)
    text = "something went wrong inside the explorer.\n\nIts log names the kind and the place."
    return failure(500, "internal", text)


def again_if_stale(ask: Callable[[], _T]) -> _T:
    """Ask, and ask again from the newest state where a file went away meanwhile.

    Raises:
        StoreChangedError: It happened each time.
    """
    left = _ATTEMPTS
    while True:
        left -= 1
        try:
            return ask()
        except StoreChangedError:
            if not left:
                raise


def add_handlers(app: FastAPI) -> None:
    """Let an app answer errors in one form."""

    async def clew_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ClewError)
        return of_error(error)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return failure(422, "bad_parameter", _wrong(error))

    async def http_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        answer = failure(error.status_code, "refused", str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    app.add_exception_handler(ClewError, clew_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)


def _wrong(error: RequestValidationError) -> str:
    """Name the parameters that are wrong, and not what they hold."""
    parts = [
        f"`{'.'.join(str(part) for part in each['loc'][1:]) or 'body'}`: {each['msg']}"
        for each in error.errors()
    ]
    return f"{'; '.join(parts)}.\n\nThe parameters are described in /api/openapi.json."
