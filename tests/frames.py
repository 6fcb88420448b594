"""Small traced frames for tests: rows in, traces out."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import clew
from clew.testing import Traced, all_traces, read_batches, run_stream, write_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]


def at(clock: str) -> dt.datetime:
    """Read a time of day, e.g. `12:00:01`, on one fixed day."""
    parts = [int(part) for part in clock.split(":")]
    hour, minute, second = [*parts, 0, 0][:3]
    return dt.datetime(2026, 1, 1, hour, minute, second, tzinfo=dt.timezone.utc)


def batch_traces(
    frame: clew.TracedFrame, folder: Path, *, name: str = "out", **provenance: Any
) -> list[Traced]:
    """Run a batch frame with provenance and return all its traces."""
    store = folder / "prov"
    frame.write.provenance(str(store), name=name, **provenance).format("noop").mode("append").save()
    return all_traces(store, name)


def answers(traces: Sequence[Traced], *columns: str, label: str = "rid") -> dict[Any, set[Any]]:
    """Map the values of some columns of each result to the labels of its source rows."""
    out: dict[Any, set[Any]] = {}
    for trace in traces:
        key: Any = tuple(trace.values[c] for c in columns)
        key = key[0] if len(columns) == 1 else key
        assert key not in out, f"two results with {key}"
        out[key] = {ref for _, ref in trace.refs(label)}
    return out


READINGS = pa.schema(
    [
        ("rid", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("meter", pa.string()),
        ("kwh", pa.int64()),
    ]
)
READINGS_DDL = "rid long, ts timestamp, meter string, kwh long"


def scattered(
    seed: int, batches: int, *, rows: int = 6, late: int = 200, meters: str = "ab"
) -> list[Rows]:
    """Make readings that come out of order, and one that closes all windows.

    Args:
        seed: Where the random numbers begin.
        batches: How many batches, 20 seconds apart.
        rows: How many rows each has.
        late: By how many seconds a row may be behind its batch.
        meters: The meters to choose from.
    """
    chosen = random.Random(seed)
    made = []
    for batch in range(batches):
        times = [max(0, 20 * batch + chosen.randint(-late, 20)) for _ in range(rows)]
        made.append(
            [
                {
                    "rid": 10 * batch + i,
                    "ts": at(f"12:{t // 60:02d}:{t % 60:02d}"),
                    "meter": chosen.choice(meters),
                    "kwh": chosen.randint(0, 3),
                }
                for i, t in enumerate(times)
            ]
        )
    return [*made, [{"rid": 999, "ts": at("13:00:00"), "meter": "a", "kwh": 1}]]


def stream_traces(
    spark: SparkSession,
    folder: Path,
    pipeline: Callable[[clew.TracedFrame], clew.TracedFrame],
    *batches: Rows,
    name: str = "out",
    **provenance: Any,
) -> list[Traced]:
    """Run a pipeline over readings, one file a micro-batch, and return all traces."""
    write_batches(folder / "in", READINGS, batches)
    source = read_batches(spark, folder / "in", READINGS_DDL)
    frame = pipeline(clew.trace(source, "readings", event_time="ts"))
    run_stream(frame, folder / "prov", name, checkpoint=folder / "chk", **provenance)
    return all_traces(folder / "prov", name)
