"""What does provenance cost a running query?

Runs each query of `queries` plain and with each capture, in one process, in turns, and compares the
runs of a turn with each other: the order is reversed from one turn to the next, so that a machine
that gets slower or faster does so for all alike. A first turn on a tenth of the rows warms up and
is dropped. Writes `benchmarks/results/overhead.json`, one row per query and capture:

| field | means |
|---|---|
| `ratio` | rate of the traced main query / plain: median, with `ratio_low` and `ratio_high` |
| `ratio_complete` | the same, but until the last edge is stored, on the same cores |
| `cpu_ratio` | CPU seconds of all processes until then, traced / plain |
| `state_bytes_ratio` | the largest state in memory, traced / plain |
| `bytes_per_edge` | size of the edge files / `edges` |
| `seconds_median` | `backward_replay`: finding the rows behind one result, median over ten |

A field is null where it has no meaning: intervals store no edges until somebody asks.

Run: python -m benchmarks.overhead [--quick] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from benchmarks import measure, streams
from benchmarks.processes import machine
from benchmarks.queries import CASES, SINGLE_ROW

from clew.unfold.retrieve import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measure import Run
    from benchmarks.queries import Case
    from benchmarks.streams import Stream
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "overhead.json"
SCRATCH = Path("build") / "bench-overhead"
SESSION = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "6g",
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # Generated code is kept for all queries, so that none is compiled again in mid-measurement.
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.log.level": "ERROR",
}
STATE_STORE = "in memory (HDFSBackedStateStoreProvider); RocksDB where the query's name says so"
_QUESTIONS = 10


class Bench:
    """Measures queries one after the other.

    Args:
        spark: The session.
        repetitions: How many turns count.
        quick: Take fewer rows, captures and queries.
    """

    def __init__(self, spark: SparkSession, repetitions: int, *, quick: bool) -> None:
        self._spark = spark
        self._repetitions = repetitions
        self._quick = quick
        self._runs = 0

    def measure(self, case: Case) -> list[dict[str, Any]]:
        """Run a query in turns and compare."""
        rows = case.quick_rows if self._quick else case.rows
        captures = case.quick_captures if self._quick else case.captures
        variants = ["plain", *captures]
        small = self._stream(case, max(10_000, rows // 10))
        for variant in variants:
            self._run(case, small, variant, unfold=True)
        stream = self._stream(case, rows)
        turns = []
        for number in range(self._repetitions):
            turn = {}
            unfold = case.unfoldings is None or number < case.unfoldings
            for variant in variants if number % 2 == 0 else reversed(variants):
                turn[variant] = self._run(case, stream, variant, unfold=unfold)
            results = {run.sink_rows for run in turn.values()}
            assert len(results) == 1, f"{case.query}: {results} results, depending on the capture"
            turns.append(turn)
        if case.shares:
            return [_asked_row(case, stream, share, turns) for share in case.shares]
        return [_row(case, stream, capture, turns) for capture in captures]

    def measure_single_rows(self, case: Case) -> dict[str, Any]:
        """Trace single results of a large source, one at a time."""
        stream = self._stream(case, case.quick_rows if self._quick else case.rows, files=6)
        folder = self._fresh()
        frame = measure.traced(self._spark, case, stream)
        query = measure.start(frame, "intervals", folder)
        query.awaitTermination()
        root = folder / "store"
        results = [pq.read_table(p, columns=["a", "b"]) for p in root.glob("rows/**/*.parquet")]
        ids = sorted((r["a"], r["b"]) for table in results for r in table.to_pylist())
        times = []
        for one in random.Random(streams.SEED).sample(ids, _QUESTIONS):
            began = time.perf_counter()
            found = measure.retrieve_some(frame, root, Selection(ids=[one]))
            times.append(time.perf_counter() - began)
            assert found == 1, f"{one}: {found} results"
        shutil.rmtree(folder)
        row = {"query": case.query, "capture": "intervals", "input_rows": stream.rows}
        nothing = dict.fromkeys(_FIELDS)
        said = {"sink_rows": len(ids), "seconds_median": round(statistics.median(times), 3)}
        spread = {"seconds_low": round(min(times), 3), "seconds_high": round(max(times), 3)}
        return {**row, **nothing, **said, **spread}

    def _stream(self, case: Case, rows: int, files: int = 6) -> Stream:
        folder = SCRATCH.absolute() / "in"
        return streams.write(case.data, folder, rows, batches=case.batches, files=files)

    def _fresh(self) -> Path:
        self._runs += 1
        return SCRATCH.absolute() / f"run-{self._runs}"

    def _run(self, case: Case, stream: Stream, variant: str, *, unfold: bool) -> Run:
        folder = self._fresh()
        if variant == "plain":
            run = measure.run_plain(self._spark, case, stream, folder)
        else:
            run = measure.run_traced(self._spark, case, stream, variant, folder, unfold=unfold)
        shutil.rmtree(folder)
        return run


_FIELDS = (
    "plain_rows_per_s",
    "traced_rows_per_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_complete",
    "cpu_ratio",
    "state_bytes_ratio",
    "bytes_per_edge",
    "edges",
)

Turn = dict[str, "Run"]


def _row(case: Case, stream: Stream, capture: str, turns: Sequence[Turn]) -> dict[str, Any]:
    """Compare the runs with one capture with the plain runs of the same turns."""
    complete = [turn for turn in turns if turn[capture].complete is not None]
    last = (complete or turns)[-1][capture]
    edges = last.edges

    def median(of: Callable[[Run, Run], float], among: Sequence[Turn]) -> float | None:
        found = [of(turn["plain"], turn[capture]) for turn in among]
        return statistics.median(found) if found else None

    ratios = [turn["plain"].seconds / turn[capture].seconds for turn in turns]
    rate = {
        name: round(stream.rows / statistics.median(turn[variant].seconds for turn in turns))
        for name, variant in (("plain_rows_per_s", "plain"), ("traced_rows_per_s", capture))
    }
    whole = median(lambda plain, run: plain.seconds / (run.complete or run.seconds), complete)
    cpu = median(lambda plain, run: run.cpu / plain.cpu, complete or turns)
    state = median(lambda plain, run: run.state_bytes / max(1, plain.state_bytes), turns)
    return {
        "query": case.query,
        "capture": capture,
        "input_rows": stream.rows,
        **rate,
        "ratio": _rounded(statistics.median(ratios)),
        "ratio_low": _rounded(min(ratios)),
        "ratio_high": _rounded(max(ratios)),
        "ratio_complete": _rounded(whole),
        "cpu_ratio": _rounded(cpu),
        "state_bytes_ratio": _rounded(state),
        "bytes_per_edge": _rounded((last.edge_bytes or 0) / edges if edges else None),
        "edges": edges,
        "sink_rows": last.sink_rows,
    }


def _asked_row(case: Case, stream: Stream, share: float, turns: Sequence[Turn]) -> dict[str, Any]:
    """Compare a query with intervals and the retrieval of a share of its rows with plain."""
    row = _row(case, stream, "intervals", turns)
    pairs = [(turn["plain"], turn["intervals"]) for turn in turns]
    asked = [run.asked[share] for _, run in pairs]
    whole = [plain.seconds / (run.seconds + run.asked[share].seconds) for plain, run in pairs]
    cpu = [(run.cpu + run.asked[share].cpu) / plain.cpu for plain, run in pairs]
    edges = asked[-1].edges
    return {
        **row,
        "query": f"{case.query}_{share:g}",
        "ratio_complete": _rounded(statistics.median(whole)),
        "cpu_ratio": _rounded(statistics.median(cpu)),
        "bytes_per_edge": _rounded(asked[-1].edge_bytes / edges if edges else None),
        "edges": edges,
        "seconds_median": round(statistics.median(each.seconds for each in asked), 3),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def session() -> SparkSession:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName("clew bench-overhead")
    for key, value in SESSION.items():
        builder = builder.config(key, value)
    local = {"spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
    for key, name in local.items():
        builder = builder.config(key, str(SCRATCH.absolute() / name))
    return builder.getOrCreate()


def show(row: dict[str, Any], seconds: float) -> None:
    """Print a row as soon as it is known."""
    spread = "" if row["ratio"] is None else f" ({row['ratio_low']}-{row['ratio_high']})"
    parts = [f"ratio {row['ratio']}{spread}", f"complete {row['ratio_complete']}"]
    parts += [f"cpu {row['cpu_ratio']}", f"state {row['state_bytes_ratio']}"]
    parts += [f"{row['plain_rows_per_s']} rows/s plain", f"{row['sink_rows']} results"]
    parts += [f"{row['edges']} edges", f"{row['bytes_per_edge']} B/edge"]
    if "seconds_median" in row:
        parts.append(f"{row['seconds_median']} s to retrieve")
    print(f"[{seconds:4.0f} s] {row['query']}, {row['capture']}: {', '.join(parts)}", flush=True)


def run(spark: SparkSession, repetitions: int, only: str, *, quick: bool) -> list[dict[str, Any]]:
    """Measure all queries whose name holds a text."""
    bench, rows, began = Bench(spark, repetitions, quick=quick), [], time.perf_counter()
    for case in (*CASES, SINGLE_ROW):
        if only not in case.query or (quick and not case.quick_rows):
            continue
        single = case is SINGLE_ROW
        made = [bench.measure_single_rows(case)] if single else bench.measure(case)
        for row in made:
            show(row, time.perf_counter() - began)
        rows += made
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few rows, some queries, two turns")
    parser.add_argument("--only", default="", help="just queries whose name holds this text")
    parser.add_argument("--repetitions", type=int, help="turns that count")
    options = parser.parse_args()
    repetitions = options.repetitions or (2 if options.quick else 5)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    began = time.perf_counter()
    spark = session()
    try:
        about = machine(spark)
        print(json.dumps(about), flush=True)
        rows = run(spark, repetitions, options.only, quick=options.quick)
    finally:
        spark.stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)
    settings = {
        "repetitions": repetitions,
        "seed": streams.SEED,
        "quick": options.quick,
        "minutes": round((time.perf_counter() - began) / 60, 1),
        "spark": SESSION,
    }
    result = {"machine": about, "state_store": STATE_STORE, "settings": settings, "rows": rows}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{settings['minutes']} minutes; written to {RESULTS}")


if __name__ == "__main__":
    main()
