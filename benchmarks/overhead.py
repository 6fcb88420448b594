"""What does provenance cost a running query?

Runs each query of `queries` plain and with each capture, in one process, in turns, and compares the
runs of a turn with each other: the order is reversed from one turn to the next, so that a machine
that gets slower or faster does so for all alike. A first turn on a tenth of the rows, and eight
for the first query, warm up and are dropped. Writes `benchmarks/results/overhead.json`, one row per
query and capture:

| field | means |
|---|---|
| `ratio` | rate of the traced main query / plain: median, with `ratio_low` and `ratio_high` |
| `ratio_complete` | the same, but until the last edge is stored, on the same cores |
| `cpu_ratio` | CPU seconds of all processes until then, traced / plain |
| `state_bytes_ratio` | the largest state in memory, traced / plain |
| `bytes_per_edge` | size of the edge files / `edges` |
| `seconds_median` | `backward_replay`: finding the rows behind one result, median over ten |

A field is null where it has no meaning: intervals store no edges until somebody asks.

Run: python -m benchmarks.overhead [--quick] [--only TEXT] [--minutes N] [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks import measure, streams
from benchmarks.compare import compared, retrieved, single_rows
from benchmarks.processes import all_cpu_seconds, cpu_seconds, machine
from benchmarks.queries import CASES, SINGLE_ROW
from clew.again.retrieve import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.compare import Turn
    from benchmarks.measure import Run
    from benchmarks.queries import Case
    from benchmarks.streams import Stream
    from clew.frame.frame import TracedFrame

RESULTS = Path(__file__).parent / "results" / "overhead.json"
SCRATCH = Path("build") / "bench-overhead"
SESSION = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "6g",
    # A heap of fixed size: the kernel does not have to zero its pages again and again.
    "spark.driver.extraJavaOptions": (
        "-XX:ReservedCodeCacheSize=512m -Xms6g -XX:+AlwaysPreTouch -XX:+UseParallelGC"
    ),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # Generated code is kept for all queries, so that none is compiled again in mid-measurement.
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.log.level": "ERROR",
}
STATE_STORE = "in memory (HDFSBackedStateStoreProvider); RocksDB where the query's name says so"
_FIRST_TURNS, _FIRST_BATCHES = 8, 3
_QUESTIONS, _QUICK_QUESTIONS = 10, 3


@dataclass
class Trial:
    """A query in the course of being measured."""

    case: Case
    stream: Stream
    plain: DataFrame
    traced: TracedFrame
    turns: list[Turn] = field(default_factory=list)
    seconds: float = 0.0

    def rows(self) -> list[dict[str, Any]]:
        """Compare the runs with each capture with the plain ones."""
        if self.case.shares:
            return [retrieved(self.case, self.stream, s, self.turns) for s in self.case.shares]
        return [compared(self.case, self.stream, c, self.turns) for c in self.case.captures]


class Bench:
    """Measures queries.

    Args:
        spark: The session.
        repetitions: How many turns count.
        deadline: When the small queries must end, by `time.perf_counter`.
        quick: Take fewer rows and queries.
    """

    def __init__(
        self, spark: SparkSession, repetitions: int, deadline: float, *, quick: bool
    ) -> None:
        self._spark = spark
        self._repetitions = repetitions
        self._deadline = deadline
        self._quick = quick
        self._runs = 0
        self._warm: set[str] = set()

    def warm_up(self, case: Case) -> Trial:
        """Run each variant of a query once on few rows, and get the data for the turns.

        Small queries of one kind differ in a number; one of them warms up for all.
        """
        rows = case.quick_rows if self._quick else case.rows
        kind = case.query.partition("_")[0]
        if case.small and kind in self._warm:
            return self._trial(case, self._stream(case, rows))
        self._warm.add(kind)
        # The first query of all warms up Spark itself, which takes longest.
        few = min(case.batches, _FIRST_BATCHES)
        small = self._trial(case, self._stream(case, max(10_000, rows // 10), few))
        for _ in range(1 if len(self._warm) > 1 or self._quick else _FIRST_TURNS):
            self._turn(small, complete=True)
        return self._trial(case, self._stream(case, rows))

    def _trial(self, case: Case, stream: Stream) -> Trial:
        frames = measure.plain(self._spark, case, stream), measure.traced(self._spark, case, stream)
        return Trial(case, stream, *frames)

    def measure(self, case: Case) -> Trial:
        """Measure a query with all its repetitions."""
        trial = self.warm_up(case)
        for _ in range(self._repetitions):
            self.turn(trial)
        return trial

    def measure_small(self, cases: Sequence[Case]) -> list[Trial]:
        """Measure queries round by round, as many as there is time for, two at least."""
        trials = [self.warm_up(case) for case in cases]
        for number in range(self._repetitions):
            for trial in trials:
                if number < 2 or time.perf_counter() + trial.seconds < self._deadline:
                    self.turn(trial)
        return trials

    def turn(self, trial: Trial) -> None:
        """Run each variant of a query once."""
        case, number, began = trial.case, len(trial.turns), time.perf_counter()
        turn = self._turn(trial, complete=case.completions is None or number < case.completions)
        results = {run.sink_rows for run in turn.values()}
        assert len(results) == 1, f"{case.query}: {results} results, depending on the capture"
        trial.turns.append(turn)
        trial.seconds = time.perf_counter() - began
        said = ", ".join(f"{v} {turn[v].seconds:.1f} s" for v in ("plain", *case.captures))
        print(f"{case.query}, turn {number + 1}: {said}", flush=True)

    def _turn(self, trial: Trial, *, complete: bool) -> Turn:
        measure.settle(self._spark, trial.case)
        variants = ("plain", *trial.case.captures)
        ordered = variants if len(trial.turns) % 2 == 0 else reversed(variants)
        return {variant: self._run(trial, variant, complete=complete) for variant in ordered}

    def measure_single_rows(self, case: Case) -> dict[str, Any]:
        """Trace single results of a large source, one at a time."""
        stream = self._stream(case, case.quick_rows if self._quick else case.rows)
        folder = self._fresh()
        frame = measure.traced(self._spark, case, stream)
        query = measure.start(frame, "intervals", folder)
        query.awaitTermination()
        root = folder / "store"
        results = [pq.read_table(p, columns=["a", "b"]) for p in root.glob("rows/**/*.parquet")]
        ids = sorted((r["a"], r["b"]) for table in results for r in table.to_pylist())
        times, asked = [], _QUICK_QUESTIONS if self._quick else _QUESTIONS
        for one in random.Random(streams.SEED).sample(ids, asked):
            began = time.perf_counter()
            found = measure.retrieve_some(frame, root, Selection(ids=[one]))
            times.append(time.perf_counter() - began)
            assert found == 1, f"{one}: {found} results"
        shutil.rmtree(folder)
        return single_rows(case, stream, len(ids), times)

    def _stream(self, case: Case, rows: int, batches: int | None = None) -> Stream:
        batches = 1 if self._quick else batches or case.batches
        return streams.write(case.data, SCRATCH.absolute() / "in", rows, batches=batches)

    def _fresh(self) -> Path:
        self._runs += 1
        return SCRATCH.absolute() / f"run-{self._runs}"

    def _run(self, trial: Trial, variant: str, *, complete: bool) -> Run:
        folder = self._fresh()
        if variant == "plain":
            run = measure.run_plain(trial.plain, folder)
        else:
            shares = trial.case.shares if complete else ()
            run = measure.run_traced(trial.traced, variant, folder, shares, complete=complete)
        shutil.rmtree(folder)
        return run


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


def show(row: dict[str, Any]) -> None:
    """Print a row as soon as it is known."""
    spread = "" if row["ratio"] is None else f" ({row['ratio_low']} - {row['ratio_high']})"
    parts = [f"ratio {row['ratio']}{spread}", f"complete {row['ratio_complete']}"]
    parts += [f"cpu {row['cpu_ratio']}", f"state {row['state_bytes_ratio']}"]
    parts += [f"{row['plain_rows_per_s']} rows/s plain", f"{row['sink_rows']} results"]
    parts += [f"{row['edges']} edges", f"{row['bytes_per_edge']} B/edge"]
    if "seconds_median" in row:
        parts.append(f"{row['seconds_median']} s to retrieve")
    print(f"{row['query']}, {row['capture']}: {', '.join(parts)}", flush=True)


def run(bench: Bench, only: str, *, quick: bool) -> list[dict[str, Any]]:
    """Measure all queries whose name holds a text."""
    chosen = [c for c in CASES if only in c.query and (c.quick_rows or not quick)]
    rows: list[dict[str, Any]] = []
    for case in (each for each in chosen if not each.small):
        rows += _shown(bench.measure(case).rows())
    if only in SINGLE_ROW.query:
        rows += _shown([bench.measure_single_rows(SINGLE_ROW)])
    for trial in bench.measure_small([each for each in chosen if each.small]):
        rows += _shown(trial.rows())
    return rows


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        show(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few rows, some queries, two turns")
    parser.add_argument("--only", default="", help="just queries whose name holds this text")
    parser.add_argument("--minutes", type=float, default=14.5, help="how long turns may go on")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write")
    options = parser.parse_args()
    repetitions = 2 if options.quick else 5
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    began = time.perf_counter()
    others = all_cpu_seconds() - cpu_seconds()
    spark = session()
    deadline = began + 60 * options.minutes
    try:
        about = machine(spark)
        print(json.dumps(about), flush=True)
        bench = Bench(spark, repetitions, deadline, quick=options.quick)
        rows = run(bench, options.only, quick=options.quick)
        seconds = time.perf_counter() - began
        about["cores_used_by_others"] = _used(others, seconds)
    finally:
        spark.stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)
    settings = {
        "repetitions": repetitions,
        "seed": streams.SEED,
        "quick": options.quick,
        "minutes": round(seconds / 60, 1),
        "spark": SESSION,
    }
    result = {"machine": about, "state_store": STATE_STORE, "settings": settings, "rows": rows}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{seconds:.0f} s, {about['cores_used_by_others']} cores used by other processes")
    print(f"written to {options.results}")


def _used(before: float, seconds: float) -> float:
    """Say how many cores other processes had; next to none, or the numbers are worth little."""
    return round((all_cpu_seconds() - cpu_seconds() - before) / seconds, 2)


if __name__ == "__main__":
    main()
