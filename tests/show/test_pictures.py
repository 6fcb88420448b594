"""Pictures and tables of an answer: whole, harmless, and read back by what they are for."""

from __future__ import annotations

import io
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from clew.ask.provenance import open_store
from clew.cli import main
from clew.exceptions import QueryError
from clew.show.export import BINARY, ENDINGS, FORMS, MEDIA, chunks, encode, ending_of
from clew.show.picture import fit, place
from clew.show.png import _font
from store.build import StoreBuilder, at, row
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.ask.trace import Trace

HOSTILE = "</text><script>alert(1)</script>\"'&<![CDATA[ \x1b[31m \x00 \u202e javascript: ]]>"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trace]]:
    """An accident, a window of 192 rows, and a row whose every text means harm."""
    folder = tmp_path_factory.mktemp("pictures")
    build_road(folder / "road")
    large = StoreBuilder(folder / "large")
    large.sink("s", ["r"])
    rows = [row(0, i, segment="f", time=at("08:00:00"), n=i, t=f"<{i}>") for i in range(192)]
    edges = [("s", 1, 1, "r", 0, i) for i in range(192)]
    large.batch("s", 0, edges=edges, rows={"r": rows, "s": [row(1, 1, n=192)]})
    bad = StoreBuilder(folder / "bad")
    nodes = [
        {"id": 0, "kind": "source", "label": HOSTILE, "inputs": []},
        {"id": 1, "kind": "filter", "label": HOSTILE, "inputs": [0]},
    ]
    graph = {"nodes": nodes, "sink": 1, "sources": [HOSTILE], "named": {}}
    bad.source(HOSTILE)
    bad.sink("s'\"<b>", [HOSTILE], graph=graph)
    columns: dict[str, Any] = {HOSTILE.replace("\x00", ""): HOSTILE, "n": 1}
    content = {
        HOSTILE: [row(0, 0, segment=HOSTILE, x=HOSTILE)],
        "s'\"<b>": [row(1, 1, **columns)],
    }
    bad.batch("s'\"<b>", 0, edges=[("s'\"<b>", 1, 1, HOSTILE, 0, 0)], rows=content)
    opened = {name: open_store(folder / name) for name in ("road", "large", "bad")}
    yield {
        "road": opened["road"].backward("accidents", {"pos": 5}, intermediate=True),
        "forward": opened["road"].forward("reports", "part-0.parquet:3"),
        "nothing": opened["road"].forward("reports", "part-0.parquet:99"),
        "large": opened["large"].backward("s", {"n": 192}),
        "bad": opened["bad"].backward("s'\"<b>", {"n": 1}),
    }
    for each in opened.values():
        each.close()


NAMES = ["road", "forward", "nothing", "large", "bad"]


def texts(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("which", NAMES)
def test_an_svg_has_a_box_and_a_title_for_each_node_and_a_line_for_each_link(
    traces: dict[str, Trace], which: str
) -> None:
    drawing = traces[which].drawing()

    root = ET.fromstring("".join(chunks(traces[which], "svg")))

    boxes = list(root.iter(f"{SVG}rect"))
    assert len(boxes) == len(drawing.nodes)
    assert len(list(root.iter(f"{SVG}path"))) == len(drawing.links)
    titles = [each.text for each in root.iter(f"{SVG}title")]
    assert len(titles) == 1 + len(drawing.nodes)
    assert all(titles)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    corners = {(int(each.attrib["x"]), int(each.attrib["y"])) for each in boxes}
    assert len(corners) == len(boxes)
    assert all(0 <= x <= width - 196 and 0 <= y <= height - 40 for x, y in corners)


@pytest.mark.parametrize("which", NAMES)
def test_an_svg_holds_nothing_that_runs_or_is_loaded(traces: dict[str, Trace], which: str) -> None:
    text = "".join(chunks(traces[which], "svg"))

    root = ET.fromstring(text)

    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "g", "path", "rect", "text"
    }  # fmt: skip
    attributes = {name for each in root.iter() for name in each.attrib}
    assert not [name for name in attributes if name.startswith("on") or "href" in name]
    assert "url(" not in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_hostile_text_is_shown_as_text(traces: dict[str, Trace]) -> None:
    root = ET.fromstring("".join(chunks(traces["bad"], "svg")))

    shown = "\n".join(each.text or "" for each in root.iter(f"{SVG}title"))
    assert "</text><script>alert(1)</script>\"'&<![CDATA[ \\x1b[31m \\x00 \\u202e" in shown
    assert any(each.startswith("</text><script>") for each in texts(root))


def test_a_large_answer_says_how_many_rows_are_counted(traces: dict[str, Trace]) -> None:
    root = ET.fromstring("".join(chunks(traces["large"], "svg")))

    assert "187 more" in texts(root)
    assert root[0].text == "Where rows came from: 6 rows shown, 187 more counted"
    [dashed] = [each for each in root.iter(f"{SVG}rect") if "stroke-dasharray" in each.attrib]
    assert dashed.attrib["fill"] == "#e5e7eb"


@pytest.mark.parametrize("which", NAMES)
def test_a_png_has_the_size_and_the_colours_of_the_drawing(
    traces: dict[str, Trace], which: str
) -> None:
    picture = place(traces[which].drawing())

    image = Image.open(io.BytesIO(b"".join(encode(traces[which], "png"))))

    assert image.size == (2 * picture.width, 2 * picture.height)
    for box in picture.boxes:
        # Just inside the left border, halfway down, there is never text.
        found = image.getpixel((2 * box.x + 12, 2 * box.y + 40))
        assert found == tuple(bytes.fromhex(box.fill[1:]))
    for curve in picture.curves:
        x, y = curve.x1 + curve.x2, curve.y1 + curve.y2  # halfway, at twice the size
        assert sum(image.crop((x - 2, y - 2, x + 3, y + 3)).convert("L").histogram()[:200])
    grey = image.convert("L").histogram()
    dark = sum(grey[:64])
    assert dark > 20 * len(picture.boxes)  # letters


def test_a_very_tall_picture_is_drawn_at_its_own_size(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    names = [f"r{i}" for i in range(60)]
    builder.sink("s", names)
    edges = [("s", 1, 1, name, 0, i) for name in names for i in range(3)]
    builder.batch("s", 0, edges=edges, rows={"s": [row(1, 1, n=1)]})

    trace = open_store(tmp_path).backward("s", {"n": 1})

    picture = place(trace.drawing())
    image = Image.open(io.BytesIO(b"".join(encode(trace, "png"))))
    assert len(trace.drawing().nodes) <= 200
    assert picture.height > 8000
    assert image.size == (picture.width, picture.height)


def test_a_machine_without_pillow_is_told_what_to_install(
    traces: dict[str, Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(QueryError, match=re.escape("pip install 'clew[png]'")):
        traces["road"].write(tmp_path / "why.png")

    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_the_font_has_pillows_own(
    traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    fonts = {True: "none.ttf", False: "none.ttf"}
    monkeypatch.setattr(import_module("clew.show.png"), "_FONTS", fonts)

    assert _font(12, bold=True).getlength("clew") > 0
    image = Image.open(io.BytesIO(b"".join(encode(traces["large"], "png"))))
    assert image.size[0] == 2 * place(traces["large"].drawing()).width


@pytest.mark.parametrize("which", NAMES)
def test_parquet_is_read_back_as_the_rows_of_the_answer(
    traces: dict[str, Trace], which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("clew.show.parquet"), "_AT_ONCE", 100)

    table = pq.read_table(pa.BufferReader(b"".join(encode(traces[which], "parquet"))))

    assert table.equals(traces[which].to_arrow())


@pytest.mark.parametrize("form", FORMS)
def test_python_and_the_command_line_write_the_same_bytes(
    tmp_path: Path, form: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    build_road(tmp_path / "prov")
    with open_store(tmp_path / "prov") as prov:
        trace = prov.backward("stopped", {"car": 8})
        expected = b"".join(encode(trace, form))
        file = tmp_path / f"why{ending_of(form)}"
        trace.write(file, form)  # type: ignore[arg-type]
    question = ["export", str(tmp_path / "prov"), "stopped", "car=8", "--format", form]

    assert main(question) == 0

    assert capfdbinary.readouterr().out == expected == file.read_bytes()
    assert MEDIA[form].partition("/")[0] in ("application", "image", "text")
    assert form == "csv-edges" or ENDINGS[file.suffix] == form
    if form not in BINARY:
        assert "".join(chunks(trace, form)).encode() == expected


def test_what_is_not_text_is_not_printed_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build_road(tmp_path / "prov")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    code = main(["export", str(tmp_path / "prov"), "stopped", "car=8", "--format", "png"])

    assert (code, capsys.readouterr()) == (
        1,
        (
            "",
            "error: `png` is not text, and would not read well here.\n\nName a file: `-o FILE`.\n",
        ),
    )
    with open_store(tmp_path / "prov") as prov, pytest.raises(QueryError, match="as text as `png`"):
        chunks(prov.backward("stopped", {"car": 8}), "png")


def test_text_is_cut_by_the_width_of_its_letters() -> None:
    assert fit("日本語日本語", 10, 40) == "日本…"
    assert fit("iiiiiiiiii", 10, 40) == "iiiiiiiiii"
    assert fit("", 10, 40) == ""
