"""Make small stores from Python dicts, as `docs/reference/store.md` describes them.

Only pyarrow and json: what these tests read was not written by the code under test.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from clew.store.layout import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

RUN = "3f2a90bc"
DAY = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)

EdgeTuple = tuple[str, int, int, str, int, int]

_EDGES = pa.schema(
    [
        ("sink", pa.string()),
        ("sink_a", pa.int64()),
        ("sink_b", pa.int64()),
        ("source", pa.string()),
        ("source_a", pa.int64()),
        ("source_b", pa.int64()),
    ]
)


def at(clock: str) -> dt.datetime:
    """Return a point in time on the first of January 2026, UTC."""
    return dt.datetime.combine(DAY, dt.time.fromisoformat(clock), dt.timezone.utc)


def row(
    a: int,
    b: int,
    *,
    segment: str | None = None,
    time: dt.datetime | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """Return one row of `rows`."""
    return {"a": a, "b": b, "segment": segment, "time": time, "row": columns}


class StoreBuilder:
    """A store that grows batch by batch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._clock = 0
        self.put(
            "clew.json", {"format": FORMAT, "created": "2026-01-01T00:00:00Z", "clew": "0.1.0"}
        )

    def put(self, path: str, value: object) -> Path:
        """Write a JSON file so that it appears whole, as a writer does."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.tmp")
        draft.write_text(json.dumps(value))
        return draft.replace(place)

    def stream(self, name: str, kind: str, **fields: Any) -> None:
        """Describe a stream."""
        known = {"name": name, "kind": kind, "schema": {"type": "struct", "fields": []}}
        self.put(f"streams/{_quote(name)}.json", {**known, **fields})

    def source(self, name: str, **fields: Any) -> None:
        """Describe a source read from Parquet files."""
        identity = {"kind": "parquet", "segment": "file", "position": "row_index"}
        self.stream(name, "source", **{"identity": identity, "exactness": "exact", **fields})

    def sink(self, name: str, sources: Sequence[str], **fields: Any) -> None:
        """Describe a sink; its graph is a filter over a union of its sources unless given."""
        nodes: list[dict[str, Any]] = [
            {"id": i, "kind": "source", "label": each, "inputs": []}
            for i, each in enumerate(sources)
        ]
        last = len(nodes)
        nodes.append({"id": last, "kind": "filter", "label": "true", "inputs": list(range(last))})
        graph = {"nodes": nodes, "sink": last, "sources": list(sources), "named": {}}
        known = {"writer": name, "exactness": "exact", "capture": "sets", "graph": graph}
        self.stream(name, "sink", **{**known, **fields})

    def batch(
        self,
        writer: str,
        number: int,
        *,
        edges: Iterable[EdgeTuple] = (),
        rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        run: str = RUN,
        gap: str | None = None,
        types: Mapping[str, pa.DataType] | None = None,
        **fields: Any,
    ) -> list[str]:
        """Write and commit a batch; return its Parquet files."""
        folder = f"{run}-{number:010d}"
        edges = list(edges)
        files: list[str] = []
        if edges:
            path = f"edges/{_quote(writer)}/{folder}/part-0.parquet"
            self._put_table(path, _edge_table(edges))
            files.append(path)
        for stream, found in (rows or {}).items():
            path = f"rows/{_quote(writer)}/{folder}/{_quote(stream)}/part-0.parquet"
            self._put_table(path, _row_table(found, (types or {}).get(stream)))
            files.append(path)
        self._clock += 1
        record = {
            "writer": writer,
            "run": run,
            "batch": number,
            "committed": f"2026-01-01T00:00:{self._clock:02d}.000000Z",
            "watermark": None,
            "sink_rows": len((rows or {}).get(writer, ())),
            "edges": len(edges),
            "files": files,
            "gap": gap,
        }
        self.put(f"batches/{_quote(writer)}/{folder}.json", {**record, **fields})
        return files

    def _put_table(self, path: str, table: pa.Table) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place)


def _quote(name: str) -> str:
    quoted = quote(name, safe="")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def _edge_table(edges: Sequence[EdgeTuple]) -> pa.Table:
    columns = [list(each) for each in zip(*edges, strict=True)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _EDGES, strict=True)], _EDGES)


def _row_table(rows: Sequence[Mapping[str, Any]], dtype: pa.DataType | None) -> pa.Table:
    content = [dict(each["row"]) for each in rows]
    return pa.table(
        {
            "a": pa.array([each["a"] for each in rows], pa.int64()),
            "b": pa.array([each["b"] for each in rows], pa.int64()),
            "segment": pa.array([each["segment"] for each in rows], pa.string()),
            "time": pa.array([each["time"] for each in rows], pa.timestamp("us", "UTC")),
            "row": pa.array(content, dtype),
        }
    )
