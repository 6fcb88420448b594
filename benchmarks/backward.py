"""How fast is one row traced in a store of a million edges?

Makes a store with pyarrow: 40 batches, 200,000 sink rows of five edges each, and the content of all
rows. Then asks `backward` for rows picked at random, one at a time, as an analyst would, and
`forward` for source rows. A question includes looking for new batches, the edges, and the content
of all rows in the answer. An open store takes small files into memory at its second question, so
the first two are slower (`first_ms`, `max_ms`); `opened_anew` opens the store for each question, as
the command line does, and reads the files. Writes `benchmarks/results/backward.json`.

Run: python benchmarks/backward.py [--quick]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.ask.provenance import open_store
from clew.model import RowId

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.ask.trace import Trace

RESULTS = Path(__file__).parent / "results" / "backward.json"
RUN = "3f2a90bc"
EDGES_PER_ROW = 5
_LONG = 1 << 63


def make_store(root: Path, batches: int, edges: int, seed: int) -> tuple[list[RowId], list[RowId]]:
    """Make a store; return some of its sink rows and of its source rows."""
    rng = random.Random(seed)
    put_json(root / "clew.json", {"format": 2, "created": "2026-01-01T00:00:00Z", "clew": "0.1.0"})
    put_json(root / "streams/reports.json", {"name": "reports", "kind": "source"})
    graph = {
        "nodes": [
            {"id": 0, "kind": "source", "label": "reports", "inputs": []},
            {"id": 1, "kind": "aggregate", "label": "window, car", "inputs": [0]},
        ],
        "sink": 1,
        "sources": ["reports"],
        "named": {},
    }
    sink = {"name": "stopped", "kind": "sink", "writer": "stopped", "exactness": "exact"}
    put_json(root / "streams/stopped.json", {**sink, "graph": graph})
    sinks: list[RowId] = []
    sources: list[RowId] = []
    for batch in range(batches):
        made = make_batch(root, batch, edges // batches, rng)
        sinks += rng.sample(made[0], 5)
        sources += rng.sample(made[1], 5)
    return sinks, sources


def make_batch(
    root: Path, batch: int, edges: int, rng: random.Random
) -> tuple[list[RowId], list[RowId]]:
    """Write and commit one batch; return its rows."""
    folder = f"{RUN}-{batch:010d}"
    segment = rng.randrange(-_LONG, _LONG)
    rows = [
        RowId("stopped", rng.randrange(-_LONG, _LONG), rng.randrange(-_LONG, _LONG))
        for _ in range(edges // EDGES_PER_ROW)
    ]
    sources = [RowId("reports", segment, i) for i in range(edges)]
    near = [rows[i // EDGES_PER_ROW] for i in range(edges)]
    table = pa.table(
        {
            "sink": ["stopped"] * edges,
            "sink_a": [each.a for each in near],
            "sink_b": [each.b for each in near],
            "source": ["reports"] * edges,
            "source_a": [each.a for each in sources],
            "source_b": [each.b for each in sources],
        }
    )
    name = f"in/part-{batch}.parquet"
    files = [
        put_table(root, f"edges/stopped/{folder}/part-0.parquet", table),
        put_rows(root, f"rows/stopped/{folder}/stopped/part-0.parquet", rows, None, rng),
        put_rows(root, f"rows/stopped/{folder}/reports/part-0.parquet", sources, name, rng),
    ]
    record = {"writer": "stopped", "run": RUN, "batch": batch, "files": files, "gap": None}
    counts = {"sink_rows": len(rows), "edges": edges, "watermark": None}
    committed = f"2026-01-01T00:{batch:02d}:00.000000Z"
    put_json(root / f"batches/stopped/{folder}.json", {**record, **counts, "committed": committed})
    return rows, sources


def put_rows(
    root: Path, path: str, ids: list[RowId], segment: str | None, rng: random.Random
) -> str:
    number = len(ids)
    content = pa.StructArray.from_arrays(
        [
            pa.array([rng.randrange(10_000) for _ in range(number)], pa.int32()),
            pa.array([rng.random() * 100 for _ in range(number)]),
            pa.array([f"segment {i % 100}" for i in range(number)]),
        ],
        ["car", "speed", "place"],
    )
    table = pa.table(
        {
            "a": [each.a for each in ids],
            "b": [each.b for each in ids],
            "segment": pa.array([segment] * number, pa.string()),
            "time": pa.array([i * 1_000_000 for i in range(number)], pa.timestamp("us", "UTC")),
            "row": content,
        }
    )
    return put_table(root, path, table)


def put_table(root: Path, path: str, table: pa.Table) -> str:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place)
    return path


def put_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def measure(ask: Callable[[str, RowId], Trace], rows: list[RowId]) -> dict[str, float]:
    """Ask for one row after the other; return milliseconds."""
    times: list[float] = []
    for row in rows:
        began = time.perf_counter()
        trace = ask(row.stream, row)
        times.append((time.perf_counter() - began) * 1000)
        expected = EDGES_PER_ROW if row.stream == "stopped" else 1
        assert len(trace) == expected, f"{row} has {len(trace)} rows, not {expected}"
    quarters = statistics.quantiles(times, n=4)
    return {
        "median_ms": round(statistics.median(times), 2),
        "quartile_1_ms": round(quarters[0], 2),
        "quartile_3_ms": round(quarters[2], 2),
        "min_ms": round(min(times), 2),
        "max_ms": round(max(times), 2),
        "first_ms": round(times[0], 2),
    }


def machine() -> dict[str, Any]:
    packages = ("duckdb", "pyarrow")
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "load_at_start": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


def run(folder: str, sinks: list[RowId], sources: list[RowId]) -> dict[str, Any]:
    def anew(stream: str, row: RowId) -> Trace:
        with open_store(folder) as provenance:
            return provenance.backward(stream, row)

    with open_store(folder) as provenance:
        return {
            "backward": measure(provenance.backward, sinks),
            "forward": measure(provenance.forward, sources),
            "backward_opened_anew": measure(anew, sinks),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the edges, no result file")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    edges, batches = (100_000, 4) if options.quick else (1_000_000, 40)
    about = machine()
    with tempfile.TemporaryDirectory() as folder:
        sinks, sources = make_store(Path(folder), batches, edges, options.seed)
        rng = random.Random(options.seed)
        queries = 10 if options.quick else 50
        sinks, sources = rng.sample(sinks, queries), rng.sample(sources, queries)
        answers = run(folder, sinks, sources)
    result = {**about, "seed": options.seed, "edges": edges, "batches": batches}
    result = {**result, "queries": queries, **answers}
    print(json.dumps(result, indent=2))
    if not options.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
        print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
