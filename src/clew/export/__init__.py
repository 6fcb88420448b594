"""Answers for other tools: W3C PROV in three forms, CSV and GraphML.

Every form is a function that yields text piece by piece, so a large answer is never held twice.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from clew.exceptions import QueryError
from clew.export.graphml import graphml
from clew.export.prov import prov_json, prov_jsonld, prov_n
from clew.export.statements import Statements
from clew.export.table import csv_edges, csv_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.query.trace import Trace

__all__ = ["ENDINGS", "FORMS", "Form", "ProvForm", "chunks", "write_file"]

ProvForm = Literal["prov-json", "prov-n", "prov-jsonld"]
Form = Literal["prov-json", "prov-n", "prov-jsonld", "csv", "csv-edges", "graphml"]

FORMS: tuple[str, ...] = get_args(Form)
"""The forms that an answer can take."""

ENDINGS = {
    ".json": "prov-json",
    ".provn": "prov-n",
    ".jsonld": "prov-jsonld",
    ".csv": "csv",
    ".graphml": "graphml",
}
"""What the name of a file says about its form."""

_WRITERS: dict[str, Callable[[Statements], Iterator[str]]] = {
    "prov-json": prov_json,
    "prov-n": prov_n,
    "prov-jsonld": prov_jsonld,
    "csv": csv_rows,
    "csv-edges": csv_edges,
    "graphml": graphml,
}


def chunks(trace: Trace, form: str) -> Iterator[str]:
    """Return an answer in some form, piece by piece.

    Raises:
        QueryError: There is no such form.
    """
    if form not in _WRITERS:
        msg = f"an answer cannot be written as `{form}`.\n\nThe forms are: {', '.join(FORMS)}."
        raise QueryError(msg)
    return _WRITERS[form](Statements(trace))


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
    pieces = chunks(trace, form or ENDINGS[path.suffix])
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        draft.replace(path)
    except OSError as error:
        msg = f"cannot write `{path}`: {error.strerror or error}.\n\nName another file."
        raise QueryError(msg) from error
    finally:
        draft.unlink(missing_ok=True)
