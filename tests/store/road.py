"""A store with two pipelines, one feeding the other: the example of most tests.

Reports of cars come in two files. `stopped` finds cars that stand still, over the named frame
`slow`; `accidents` finds two stopped cars in one place. Ids are small numbers so that tests can
name them: a file's number and the line in it, or a number chosen here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.build import StoreBuilder, at, row

if TYPE_CHECKING:
    from pathlib import Path

FILE_0 = "file:///in/part-0.parquet"
FILE_1 = "file:///in/part-1.parquet"

STOPPED_GRAPH = {
    "nodes": [
        {"id": 0, "kind": "source", "label": "reports", "inputs": [], "detail": {}},
        {"id": 1, "kind": "filter", "label": "speed = 0", "inputs": [0], "detail": {}},
        {"id": 2, "kind": "named", "label": "slow", "inputs": [1], "detail": {}},
        {"id": 3, "kind": "aggregate", "label": "window 120 s, car", "inputs": [2], "detail": {}},
    ],
    "sink": 3,
    "sources": ["reports"],
    "named": {"slow": 2},
}
ACCIDENTS_GRAPH = {
    "nodes": [
        {"id": 0, "kind": "source", "label": "stopped", "inputs": [], "detail": {}},
        {"id": 1, "kind": "aggregate", "label": "window 30 s, pos", "inputs": [0], "detail": {}},
        {"id": 2, "kind": "filter", "label": "cars > 1", "inputs": [1], "detail": {}},
    ],
    "sink": 2,
    "sources": ["stopped"],
    "named": {},
}


def report(file: int, line: int, clock: str, car: int) -> dict[str, Any]:
    """Return a report of a car that stands at position 5."""
    segment = (FILE_0, FILE_1)[file]
    return row(file, line, segment=segment, time=at(clock), car=car, speed=0, pos=5)


def build_road(root: Path) -> StoreBuilder:
    """Make the store: cars 7 and 8 stand, and crash; car 9 stands alone."""
    store = StoreBuilder(root)
    fields = [{"name": name, "type": "integer"} for name in ("car", "speed", "pos")]
    store.source("reports", schema={"type": "struct", "fields": fields}, event_time="ts")
    store.sink("stopped", ["reports"], graph=STOPPED_GRAPH)
    store.stream("slow", "named", writer="stopped", exactness="exact", node=2, sources=["reports"])
    store.sink("accidents", ["stopped"], graph=ACCIDENTS_GRAPH)
    store.batch(
        "stopped",
        0,
        watermark="2026-01-01T08:00:30.000000Z",
        rows={
            "stopped": [row(70, 1, car=7, n=2), row(80, 1, car=8, n=2)],
            "reports": [
                report(0, 0, "08:00:00", 7),
                report(0, 1, "08:00:05", 8),
                report(0, 3, "08:00:10", 7),
                report(1, 0, "08:00:15", 8),
            ],
            "slow": [row(700, i, car=7 + i % 2) for i in range(4)],
        },
        edges=[
            ("stopped", 70, 1, "reports", 0, 0),
            ("stopped", 70, 1, "reports", 0, 3),
            ("stopped", 80, 1, "reports", 0, 1),
            ("stopped", 80, 1, "reports", 1, 0),
            ("stopped", 70, 1, "slow", 700, 0),
            ("stopped", 70, 1, "slow", 700, 2),
            ("stopped", 80, 1, "slow", 700, 1),
            ("stopped", 80, 1, "slow", 700, 3),
            ("slow", 700, 0, "reports", 0, 0),
            ("slow", 700, 1, "reports", 0, 1),
            ("slow", 700, 2, "reports", 0, 3),
            ("slow", 700, 3, "reports", 1, 0),
        ],
    )
    store.batch(
        "stopped",
        1,
        watermark="2026-01-01T08:01:00.000000Z",
        rows={
            "stopped": [row(90, 1, car=9, n=1), row(70, 2, car=7, n=1)],
            "reports": [report(1, 4, "08:00:40", 9), report(0, 3, "08:00:10", 7)],
            "slow": [row(700, 2, car=7), row(700, 4, car=9)],
        },
        edges=[
            ("stopped", 90, 1, "reports", 1, 4),
            ("stopped", 70, 2, "reports", 0, 3),
            ("stopped", 90, 1, "slow", 700, 4),
            ("stopped", 70, 2, "slow", 700, 2),
            ("slow", 700, 4, "reports", 1, 4),
            ("slow", 700, 2, "reports", 0, 3),
        ],
    )
    store.batch(
        "accidents",
        0,
        run="aaaabbbb",
        rows={
            "accidents": [row(5, 5, pos=5, cars=2)],
            "stopped": [row(70, 1, car=7, n=2), row(80, 1, car=8, n=2)],
        },
        edges=[
            ("accidents", 5, 5, "stopped", 70, 1),
            ("accidents", 5, 5, "stopped", 80, 1),
        ],
    )
    return store
