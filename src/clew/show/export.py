"""Answers for other tools: W3C PROV in three forms, CSV, GraphML, Parquet, and as pictures.

Every form is a function that yields text or bytes piece by piece, so a large answer is never held
twice. `encode` gives the bytes of any form; `chunks` the text of those that are text.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from clew.exceptions import QueryError
from clew.show.graphml import graphml
from clew.show.parquet import parquet
from clew.show.png import png
from clew.show.prov_forms import prov_json, prov_jsonld, prov_n
from clew.show.spreadsheet import csv_edges, csv_rows
from clew.show.statements import Statements
from clew.show.svg import svg

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from clew.ask.trace import Trace

__all__ = [
    "BINARY",
    "ENDINGS",
    "FORMS",
    "MEDIA",
    "Form",
    "ProvForm",
    "chunks",
    "encode",
    "ending_of",
    "write_file",
]

ProvForm = Literal["prov-json", "prov-n", "prov-jsonld"]
Form = Literal[
    "prov-json",
    "prov-n",
    "prov-jsonld",
    "csv",
    "csv-edges",
    "graphml",
    "svg",
    "png",
    "parquet",
]

FORMS: tuple[str, ...] = get_args(Form)
"""The forms that an answer can take."""

ENDINGS = {
    ".json": "prov-json",
    ".provn": "prov-n",
    ".jsonld": "prov-jsonld",
    ".csv": "csv",
    ".graphml": "graphml",
    ".svg": "svg",
    ".png": "png",
    ".parquet": "parquet",
}
"""What the name of a file says about its form."""

MEDIA: dict[str, str] = {
    "prov-json": "application/json",
    "prov-n": "text/provenance-notation; charset=utf-8",
    "prov-jsonld": "application/ld+json",
    "csv": "text/csv; charset=utf-8",
    "csv-edges": "text/csv; charset=utf-8",
    "graphml": "application/graphml+xml",
    "svg": "image/svg+xml",
    "png": "image/png",
    "parquet": "application/vnd.apache.parquet",
}
"""The media type of each form."""

_STATEMENTS: dict[str, Callable[[Statements], Iterator[str]]] = {
    "prov-json": prov_json,
    "prov-n": prov_n,
    "prov-jsonld": prov_jsonld,
    "csv": csv_rows,
    "csv-edges": csv_edges,
    "graphml": graphml,
}
_BYTES: dict[str, Callable[[Trace], Iterator[bytes]]] = {"png": png, "parquet": parquet}

BINARY = frozenset(_BYTES)
"""The forms that are not text."""


def chunks(trace: Trace, form: str) -> Iterator[str]:
    """Return an answer in some form, as text, piece by piece.

    Raises:
        QueryError: There is no such form, or it is not text.
    """
    if form == "svg":
        return svg(trace)
    if form not in _STATEMENTS:
        kind = "as text " if form in BINARY else ""
        known = [each for each in FORMS if not kind or each not in BINARY]
        msg = (
            f"an answer cannot be written {kind}as `{form}`.\n\nThe forms are: {', '.join(known)}."
        )
        raise QueryError(msg)
    return _STATEMENTS[form](Statements(trace))


def encode(trace: Trace, form: str) -> Iterator[bytes]:
    """Return an answer in some form, as the bytes of a file, piece by piece.

    Raises:
        QueryError: There is no such form, or what draws it is not installed.
    """
    if form in BINARY:
        return _BYTES[form](trace)
    return (piece.encode() for piece in chunks(trace, form))


def ending_of(form: str) -> str:
    """Return how the name of a file in some form ends.

    Examples:
        >>> ending_of("prov-n"), ending_of("csv-edges")
        ('.provn', '.csv')
    """
    endings = {each: ending for ending, each in ENDINGS.items()}
    return endings[form] if form in endings else f".{form.partition('-')[0]}"


def write_file(trace: Trace, to: str | os.PathLike[str], form: str | None = None) -> None:
    """Write an answer to a file, which appears whole or not at all.

    Raises:
        QueryError: There is no such form, or the file cannot be written.
    """
    path = Path(to)
    if form is None and path.suffix not in ENDINGS:
        known = ", ".join(f"`{ending}`" for ending in ENDINGS)
        msg = (
            f"the name `{path.name}` does not say in which form to write; known endings are "
            f'{known}.\n\nName one of them, or the form: `form="prov-json"`.'
        )
        raise QueryError(msg)
    pieces = encode(trace, form or ENDINGS[path.suffix])
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with draft.open("wb") as file:
            file.writelines(pieces)
        draft.replace(path)
    except OSError as error:
        msg = f"cannot write `{path}`: {error.strerror or error}.\n\nName another file."
        raise QueryError(msg) from error
    finally:
        draft.unlink(missing_ok=True)
