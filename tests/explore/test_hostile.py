"""Names and values that try to be something else are text, everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.ask.provenance import open_store
from explore.server import serving
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

HOSTILE = [
    "'; DROP TABLE held; --",
    '" OR 1=1 --',
    "a/b/../../etc/passwd",
    "<script>alert(1)</script>",
    "café ☕ \U0001f980 \u202e",
    "$choice_0 $row_files_0 %s {}",
    "new\nline\ttab",
    "comma,semi;colon:7",
    "x" * 900,
    "..",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a stream for each name that fits a file, and a value for each text."""
    builder = StoreBuilder(tmp_path_factory.mktemp("hostile") / "prov")
    for number, name in enumerate(n for n in HOSTILE if len(n) < 60):
        builder.source(f"in {name}")
        builder.sink(name, [f"in {name}"])
        builder.batch(
            name,
            0,
            run=f"{number:08x}",
            edges=[(name, i, 1, f"in {name}", 0, i) for i in range(len(HOSTILE))],
            rows={
                name: [{**row(i, 1), "row": {f"c {name}": text}} for i, text in enumerate(HOSTILE)],
                f"in {name}": [row(0, i, segment=name, v=i) for i in range(len(HOSTILE))],
            },
        )
    return builder.root


@pytest.fixture(scope="module")
def asking(root: Path) -> Iterator[httpx.Client]:
    with open_store(root) as provenance, serving(provenance) as client:
        yield client


@pytest.mark.parametrize("name", [n for n in HOSTILE if len(n) < 60])
def test_a_stream_may_be_called_anything(asking: httpx.Client, name: str) -> None:
    found = asking.get("/api/rows", params={"stream": name}).json()
    values = [each["row"][f"c {name}"] for each in found["rows"]]
    forward = asking.get("/api/forward", params={"stream": f"in {name}", "row": f"{name}:3"})
    export = {"stream": name, "row": f"{2:016x}{1:016x}", "direction": "backward", "format": "csv"}
    file = asking.get("/api/export", params=export)

    assert values == HOSTILE
    assert [each["id"] for each in forward.json()["rows"]] == [f"{3:016x}{1:016x}"]
    assert file.status_code == 200
    assert file.headers["content-disposition"].isascii()
    assert "/" not in file.headers["content-disposition"].split("filename=")[1].split(";")[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_values_are_compared_and_never_run(asking: httpx.Client, text: str) -> None:
    name = HOSTILE[0]
    number = HOSTILE.index(text)
    column = f"c {name}"
    holding = [each for each in HOSTILE if text in each]
    for op, expected in (("=", [text]), ("contains", holding)):
        params = {"stream": name, "column": column, "op": op, "value": text}
        found = asking.get("/api/rows", params=params).json()
        assert [each["row"][column] for each in found["rows"]] == expected
    anywhere = asking.get("/api/rows", params={"stream": name, "text": text}).json()
    by_value = asking.get("/api/backward", params={"stream": name, "row": f"{column}={text}"})

    assert [each["row"][column] for each in anywhere["rows"]] == holding
    assert [each["row"]["v"] for each in by_value.json()["rows"]] == [number]


@pytest.mark.parametrize("text", [*HOSTILE, "\x00", "\x00" * 40, "0" * 32, "f" * 32, "x" * 5000])
@pytest.mark.parametrize("place", ["stream", "row", "column", "order_by", "id", "scope", "from"])
def test_any_text_in_any_place_has_an_answer(asking: httpx.Client, place: str, text: str) -> None:
    stream = HOSTILE[0]
    asked = {"stream": stream, "row": "0" * 32, "column": f"c {stream}", "op": "=", "value": "x"}
    wanted = {**asked, place: text}
    only_rows = {"column", "op", "value", "order_by", "id", "from"}
    paths = ("rows",) if place in only_rows else ("backward", "forward", "status", "drawing")

    for path in paths:
        params = {k: v for k, v in wanted.items() if path == "rows" or k not in only_rows}
        if path == "drawing":
            params["direction"] = "forward"
        answer = asking.get(f"/api/{path}", params=params)
        assert answer.status_code in {200, 400, 404, 422}, answer.text
        if answer.status_code != 200:
            assert set(answer.json()["error"]) == {"code", "message", "hint"}
