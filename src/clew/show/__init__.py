"""How answers look: text, tables, drawings, pages of a notebook, files for other tools.

The package itself has what all of them write with.
"""

from __future__ import annotations

from clew.show.text import Line, Part, cell, count, escape, iso, join, listing, plain, table

__all__ = [
    "Line",
    "Part",
    "cell",
    "count",
    "escape",
    "iso",
    "join",
    "listing",
    "plain",
    "table",
]
