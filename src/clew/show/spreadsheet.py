"""CSV: the rows of an answer, or its edges, as a spreadsheet or a database reads them.

Commas between fields, quotes doubled, a line feed at the end of each line. Null is an empty field.
A text that a spreadsheet would take for a formula has an apostrophe in front: rows may hold what
strangers wrote, and a formula can send a sheet's content away.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from clew import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.show.statements import Statements

_AT_ONCE = 1024
_END = "\r\n"
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_rows(said: Statements) -> Iterator[str]:
    """Write the rows at the ends of the answer, with the columns of `Trace.to_arrow`."""
    from clew.show.arrow import to_python

    table = said.trace.to_arrow()
    yield _line(table.column_names)
    for first in range(0, table.num_rows, _AT_ONCE):
        columns = [to_python(each) for each in table.slice(first, _AT_ONCE).columns]
        yield from map(_line, zip(*columns, strict=True))


def csv_edges(said: Statements) -> Iterator[str]:
    """Write the edges of the answer, each on a line."""
    yield _line(("sink", "sink_id", "source", "source_id"))
    for edge in said.edges:
        yield _line((edge.sink.stream, edge.sink.text, edge.source.stream, edge.source.text))


def _line(values: Iterable[Any]) -> str:
    file = io.StringIO()
    # Python quotes what is in the end of a line: a bare carriage return would begin a row, too.
    csv.writer(file, lineterminator=_END).writerow(
        ["" if each is None else as_cell(each) if isinstance(each, str) else show.cell(each)
         for each in values]
    )  # fmt: skip
    return file.getvalue().removesuffix(_END) + "\n"


def as_cell(text: str) -> str:
    """Write a text so that a spreadsheet takes it for text; what is a number stays as it is.

    Examples:
        >>> as_cell("=1+1"), as_cell("-5.5"), as_cell("north")
        ("'=1+1", '-5.5', 'north')
    """
    is_formula = _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text
