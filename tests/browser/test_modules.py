"""The parts of the page that only compute, asked in the browser that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.serving import Show

# Two results of two rows each, through one step; they share row b.
DRAWING: dict[str, list[Any]] = {
    "nodes": [
        *({"key": key, "kind": "row", "layer": 0, "place": i} for i, key in enumerate("abc")),
        {"key": "step", "kind": "step", "layer": 1, "place": 0},
        *({"key": key, "kind": "row", "layer": 2, "place": i} for i, key in enumerate("xy")),
    ],
    "links": [
        *({"source": key, "target": "step"} for key in "abc"),
        *({"source": "step", "target": key} for key in "xy"),
    ],
    "edges": [["x", "a"], ["x", "b"], ["y", "b"], ["y", "c"]],
}


@pytest.fixture
def modules(page: Page, show: Show, road: Path) -> Page:
    page.goto(show(road).address)
    return page


def call(page: Page, module: str, function: str, *arguments: Any) -> Any:
    script = """async ([module, name, given]) => {
      const found = (await import(`/static/js/${module}.js`))[name](...given);
      return found instanceof Map ? Object.fromEntries(found)
        : found instanceof Set ? [...found].sort() : found;
    }"""
    return page.evaluate(script, [module, function, list(arguments)])


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("x", ["a", "b", "step", "x"]),
        ("b", ["b", "step", "x", "y"]),
        ("c", ["c", "step", "y"]),
        ("step", ["a", "b", "c", "step", "x", "y"]),
    ],
)
def test_what_belongs_together_follows_edges_not_shared_steps(
    modules: Page, key: str, expected: list[str]
) -> None:
    assert call(modules, "reach", "related", DRAWING, key) == expected


def test_a_row_that_is_added_below_keeps_layers_where_they_are(modules: Page) -> None:
    before = call(modules, "layout", "positions", DRAWING["nodes"], False)
    added = {"key": "d", "kind": "row", "layer": 0, "place": 3}
    after = call(modules, "layout", "positions", [*DRAWING["nodes"], added], False)

    assert {key: after[key]["x"] for key in before} == {k: at["x"] for k, at in before.items()}
    assert [after[key]["y"] for key in "abcd"] == sorted(after[key]["y"] for key in "abcd")
    assert {after[key]["x"] for key in "abcd"} == {after["a"]["x"]}
    assert after["a"]["x"] < after["step"]["x"] < after["x"]["x"]


def test_arrows_lead_along_links_and_within_layers(modules: Page) -> None:
    ways = [("a", "right"), ("step", "left"), ("step", "right"), ("a", "down"), ("c", "down")]

    found = [call(modules, "steer", "neighbour", DRAWING, key, way, False) for key, way in ways]

    assert found == ["step", "a", "x", "b", None]


def test_words(modules: Page) -> None:
    said = [
        call(modules, "words", "count", 1, "query"),
        call(modules, "words", "count", 1200, "query"),
        call(modules, "words", "count", 2, "batch"),
        call(modules, "words", "duration", 150),
        call(modules, "words", "duration", 0.042),
        call(modules, "words", "time", "2026-01-01T08:00:01.500000Z"),
        call(modules, "types", "typeWords", 'STRUCT("start" TIMESTAMP, "end" TIMESTAMP)'),
        call(modules, "types", "typeWords", "BIGINT[]"),
    ]

    assert said == [
        "1 query",
        "1,200 queries",
        "2 batches",
        "2 min 30 s",
        "42 ms",
        "2026-01-01 08:00:01.5",
        "time span",
        "list",
    ]
