"""How answers show themselves in a notebook: a small table, and a picture where there is one.

Everything is plain HTML and inline SVG: no script, nothing that is loaded, no style that would
reach beyond it. Text comes from data and is escaped. Colours are those of the notebook, so tables
read in light and dark themes alike. The classes of `clew.query` call these from `_repr_html_`.
"""

from __future__ import annotations

from clew.notebook.page import (
    drawing_page,
    provenance_page,
    replay_page,
    row_page,
    rows_page,
    stream_page,
    streams_page,
    timeline_page,
    trace_page,
)

__all__ = [
    "drawing_page",
    "provenance_page",
    "replay_page",
    "row_page",
    "rows_page",
    "stream_page",
    "streams_page",
    "timeline_page",
    "trace_page",
]
