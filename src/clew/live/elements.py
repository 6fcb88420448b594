"""The elements of a live graph, and where its files are in a store.

A graph is a growing folder of Parquet files, one for each step, and a file appears whole or not at
all. An element is a vertex, an edge or a label; a label says that a vertex gets no more edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from clew.store.layout import quote_name

if TYPE_CHECKING:
    from pathlib import Path

LIVE = "live"
ELEMENTS = "elements"

VERTEX, EDGE, LABEL = "vertex", "edge", "label"
SOURCE, SINK = "source", "sink"

_TIME = pa.timestamp("us", tz="UTC")

SCHEMA = pa.schema(
    [
        ("element", pa.string()),
        ("at", _TIME),
        ("step", pa.int64()),
        ("side", pa.string()),
        ("stream", pa.string()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("sink", pa.string()),
        ("sink_a", pa.int64()),
        ("sink_b", pa.int64()),
        ("time", _TIME),
        ("row", pa.string()),
        ("segment", pa.string()),
    ]
)
"""The columns of an element.

`element` is `vertex`, `edge` or `label`. `at` is the graph's event time when it was delivered: the
least watermark of all queries. `step` numbers deliveries. `side` says whether a vertex or label is
of a source row or of a sink row. `stream`, `a` and `b` name the row: of an edge, the source row;
its sink row is in `sink`, `sink_a` and `sink_b`. A vertex has the row's event time in `time`, its
content in `row`, as JSON, and the readable name of a source row's segment in `segment`.
"""

SPARK_SCHEMA = (
    "element string, at timestamp, step bigint, side string, stream string, a bigint, b bigint, "
    "sink string, sink_a bigint, sink_b bigint, time timestamp, row string, segment string"
)


def graph_folder(root: Path, graph: str) -> Path:
    """Return the folder of a live graph."""
    return root / LIVE / quote_name(graph)


def elements_folder(root: Path, graph: str) -> Path:
    """Return the folder with one file of elements for each step."""
    return graph_folder(root, graph) / ELEMENTS


def element_file(root: Path, graph: str, step: int) -> Path:
    """Return the file whose presence commits a step."""
    return elements_folder(root, graph) / f"{step:010d}.parquet"
