"""Pieces of HTML: text that is safe, lines, tables."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from clew import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_RULE = "1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;padding:2px 10px 2px 2px;border-bottom:{_RULE};vertical-align:top"
_MOST = 80


def text(value: str) -> str:
    r"""Write text that comes from data.

    Examples:
        >>> text("<b>\x1b")
        '&lt;b&gt;\\x1b'
    """
    return escape(show.escape(value))


def cell(value: object) -> str:
    """Write a value of a row, cut where it is long."""
    shown = show.cell(value)
    return text(shown if len(shown) <= _MOST else shown[: _MOST - 1] + "…")


def line(value: str, *, strong: bool = False) -> str:
    """Write a line of text."""
    weight = ";font-weight:bold" if strong else ""
    return f'<div style="margin:4px 0{weight}">{text(value)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table.

    Args:
        header: The names of the columns.
        rows: The cells, as HTML.
    """
    head = "".join(f'<th scope="col" style="{_CELL}">{text(each)}</th>' for each in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{each}</td>' for each in row) + "</tr>"
        for row in rows
    )
    return scroll(
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def scroll(content: str) -> str:
    """Let wide content scroll by itself."""
    return f'<div style="overflow-x:auto;max-width:100%">{content}</div>'


def page(*parts: str) -> str:
    """Put parts together."""
    return f"<div>{''.join(parts)}</div>"
