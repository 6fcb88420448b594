"""Answers show themselves in a notebook: what they say, safely, and nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from clew.ask.outcome import Difference, Replay
from clew.ask.provenance import open_store
from clew.ask.row import Row
from clew.model import RowId
from store.build import StoreBuilder, at, row
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'& \x1b[31m"
TAGS = {
    "div", "table", "thead", "tbody", "tr", "th", "td", "svg", "title", "g", "path", "rect", "text"
}  # fmt: skip


class Page(HTMLParser):
    """What a page shows, and what it is made of."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.cells: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.cells[-1][-1] += data


def page(shown: Any) -> Page:
    found = Page(shown._repr_html_())
    assert set(found.tags) <= TAGS
    assert not [name for name in found.attributes if name.startswith("on")]
    assert not found.attributes & {"src", "href", "xlink:href", "srcset"}
    html = shown._repr_html_()
    assert "url(" not in html
    assert set(re.findall(r"https?://[^\"]*", html)) <= {"http://www.w3.org/2000/svg"}
    assert "\x1b" not in html
    return found


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("pages")
    build_road(folder / "road")
    bad = StoreBuilder(folder / "bad")
    bad.source(HOSTILE)
    bad.sink("s<b>", [HOSTILE])
    rows = {
        HOSTILE: [row(0, 0, segment=HOSTILE, time=at("08:00:00"), x=HOSTILE)],
        "s<b>": [row(1, 1, n=1, **{HOSTILE: HOSTILE})],  # type: ignore[arg-type]
    }
    bad.batch("s<b>", 0, edges=[("s<b>", 1, 1, HOSTILE, 0, 0)], rows=rows)
    bad.batch("s<b>", 1, gap=HOSTILE)
    opened = {name: open_store(folder / name) for name in ("road", "bad")}
    yield opened
    for each in opened.values():
        each.close()


def test_a_trace_shows_a_sentence_its_rows_and_its_drawing(stores: dict[str, Any]) -> None:
    trace = stores["road"].backward("accidents", {"pos": 5})

    shown = page(trace)

    assert repr(trace).splitlines()[0] in shown.text
    assert shown.cells[0] == ["row", "time", "car", "speed", "pos"]
    assert shown.cells[1] == ["part-0.parquet:0", "2026-01-01T08:00:00Z", "7", "0", "5"]
    assert len(shown.cells) == 1 + len(trace)
    assert shown.tags.count("rect") == len(trace.drawing().nodes)
    assert "exactness: exact" in shown.text
    assert f"path: {trace.path[0]}" in shown.text


def test_a_forward_trace_shows_its_status(stores: dict[str, Any]) -> None:
    shown = page(stores["road"].forward("reports", "part-0.parquet:3"))

    assert shown.cells[0][:2] == ["stream", "row"]
    assert "status: alive, more results may follow" in shown.text


def test_many_rows_are_cut_and_counted(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    rows = [row(0, i, segment="f", n=i) for i in range(1200)]
    edges = [("s", 1, 1, "r", 0, i) for i in range(1200)]
    builder.batch("s", 0, edges=edges, rows={"r": rows, "s": [row(1, 1, n=1)]})
    prov = open_store(tmp_path)

    shown = page(prov.backward("s", {"n": 1}))

    assert [cells[0] for cells in shown.cells] == ["row", *(f"f:{i}" for i in range(10))]
    assert "and 1,190 more" in shown.text
    assert len(page(prov.rows("r", limit=15)).cells) == 11


def test_a_row_shows_its_columns(stores: dict[str, Any]) -> None:
    found = stores["road"].row("reports", "part-0.parquet:3")

    shown = page(found)

    assert shown.cells == [["column", "value"], ["car", "7"], ["speed", "0"], ["pos", "5"]]
    assert "reports file:///in/part-0.parquet:3, 2026-01-01T08:00:10Z" in shown.text
    unknown = Row(RowId("r", 1, 1), {}, known=False)
    assert "the store does not have its content" in page(unknown).text


def test_streams_and_a_store_show_a_table(stores: dict[str, Any]) -> None:
    prov = stores["road"]

    shown = page(prov.streams())

    assert [cells[0] for cells in shown.cells[1:]] == [each.name for each in prov.streams()]
    assert shown.cells[0][0] == "stream"
    assert page(prov).cells == shown.cells
    assert prov.path in page(prov).text
    assert ["kind", "sink"] in page(prov.streams()[0]).cells


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    prov = open_store(StoreBuilder(tmp_path).root)

    assert "The store has no streams yet." in page(prov).text


def test_a_replay_shows_what_differs() -> None:
    differences = (
        Difference(RowId("s", 1, 1), {"k": 1, "n": 2}, {"k": 1, "n": 3}),
        Difference(RowId("s", 2, 1), None, {"k": 2}),
        Difference(RowId("s", 3, 1), {"k": HOSTILE}, None),
    )

    shown = page(Replay("s", 5, differences * 4))

    assert shown.cells[1:3] == [
        ["00000000", "changed", "n", '{"n": 2}', '{"n": 3}'],
        ["00000000", "new", "k", "", '{"k": 2}'],
    ]
    assert shown.cells[3][1] == "gone"
    assert "s: 5 results as before, 12 differ" in shown.text
    assert "and 2 more" in shown.text


def test_a_drawing_and_a_timeline_show_themselves(stores: dict[str, Any]) -> None:
    trace = stores["road"].backward("accidents", {"pos": 5})

    assert page(trace.drawing()).tags.count("rect") == len(trace.drawing().nodes)
    shown = page(trace.timeline())
    assert shown.tags.count("rect") == 4
    assert "3 rows without a time" in shown.text
    binned = page(trace.timeline(limit=1))
    assert binned.tags.count("rect") == 4
    assert "reports (4)" in binned.text
    nothing = stores["road"].backward("accidents", {"pos": 5}, scope="stopped").timeline()
    assert "No row of the answer has a time." in page(nothing).text


def test_hostile_data_is_shown_as_text(stores: dict[str, Any]) -> None:
    prov = stores["bad"]
    trace = prov.backward("s<b>", {"n": 1})

    for each in (trace, trace.rows, trace.rows[0], trace.start[0], trace.drawing(), prov,
                 trace.timeline(), prov.streams(), *prov.streams()):  # fmt: skip
        assert "alert(1)" in page(each).text
    assert page(trace.rows).cells[1][-1].startswith("</td><script>alert(1)</script><img")
