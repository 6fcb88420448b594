"""The thesis's four evaluations, on Spark: storage, throughput, memory and latency of event keys.

A chain of steps, each over the one before, is fed rows with a payload of 100 bytes or 1 kB. A map
rewrites every character of the payload, so that it has some work to do; a bare map adds two
numbers, the least that a step can do. The same chain runs plain and in the modes of Figure 6.1, in
turns whose order is reversed from one to the next, and is compared within a turn. A store counts as
done when the last key is recorded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import clew
from benchmarks.overhead import session
from benchmarks.processes import all_cpu_seconds, cpu_seconds, machine
from clew.again.estimate import estimate
from clew.steps import listen, unlisten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

SCRATCH = Path("build/bench-keys")
RESULTS = Path("benchmarks/results/keys.json")
SEED = 7
_ROWS = 100_000
_BEGIN = 1_767_225_600_000_000
_DIGITS = "0123456789abcdef"
_TURNED = _DIGITS[1:] + _DIGITS[0]
_MODES = ("receive", "store", "on-the-fly")
_FORMS = {"optimised": "first", "unoptimised": "all"}
_SCHEMA = "ts timestamp, number long, payload string"

Frame = Any


def turned(frame: Frame, _: int) -> Frame:
    """A map that rewrites the payload."""
    return frame.withColumn("payload", F.translate("payload", _DIGITS, _TURNED))


def bare(frame: Frame, step: int) -> Frame:
    """The least that a map can do."""
    return frame.withColumn("number", F.col("number") + step)


def passing(frame: Frame, step: int) -> Frame:
    """A filter that most rows pass."""
    return frame.filter(F.col("number") % (50 + step) != step)


def windowed(frame: Frame, step: int) -> Frame:
    """A tumbling window of a tenth of a second over the windows of the step before."""
    time_of = F.col("ts") if step == 0 else F.window_time("window")
    groups = frame.groupBy(F.window(time_of, "100 milliseconds"))
    return groups.agg(F.count(F.lit(1)).alias("n"))


@dataclass(frozen=True)
class Input:
    """Rows in files, one file for a batch."""

    folder: Path
    rows: int
    payload: int

    def read(self, spark: SparkSession) -> Any:
        reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


def write_input(rows: int, payload: int, files: int) -> Input:
    """Write rows a millisecond apart, with a payload of random hexadecimal digits."""
    folder = SCRATCH / f"in-{rows}-{payload}-{files}"
    if folder.exists():
        return Input(folder, rows, payload)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(SEED)
    each = rows // files
    for number in range(files):
        at = np.arange(number * each, (number + 1) * each)
        texts = rng.integers(0, 16, size=(each, payload), dtype=np.uint8)
        letters = np.frombuffer(_DIGITS.encode(), dtype="S1")[texts]
        payloads = letters.view(f"S{payload}").ravel().astype(str)
        times = pa.array(_BEGIN + at * 1000, pa.timestamp("us", "UTC"))
        table = pa.table({"ts": times, "number": at, "payload": payloads})
        pq.write_table(table, folder / f"{number:04d}.parquet", compression="zstd")
    return Input(folder, rows, payload)


def chain(spark: SparkSession, data: Input, step: Any, operators: int, mode: str) -> Frame:
    """Build a chain of steps; on the fly, a delay grows with each of them."""
    frame: Any = data.read(spark)
    if mode != "plain":
        frame = clew.trace(frame, "rows", event_time="ts")
    if mode == "on-the-fly":
        frame = frame.property("delay", F.lit(0), merge="max")
    if step is windowed:
        frame = frame.withWatermark("ts", "0 seconds")
    for number in range(operators):
        frame = step(frame, number)
        if mode == "on-the-fly":
            frame = frame.property("delay", lambda delay: delay + 1)
    return frame


@dataclass(frozen=True)
class Done:
    """What a run took.

    Attributes:
        seconds: Until the last row is written and the last key recorded or property delivered.
        stored: Bytes of what was recorded.
        state: Bytes of the largest state of all steps.
        latency: Milliseconds from when a batch is in the sink until its properties are delivered.
    """

    seconds: float
    stored: int = 0
    state: int = 0
    latency: float | None = None


class Bench:
    """Runs chains, each in a folder of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._runs = 0

    def run(self, data: Input, step: Any, operators: int, mode: str, form: str = "") -> Done:
        """Run a chain once."""
        self._runs += 1
        folder = SCRATCH / f"run-{self._runs}"
        frame = chain(self.spark, data, step, operators, mode)
        writer = _provenance(frame.writeStream.queryName(f"run {self._runs}"), mode, form, folder)
        writer = writer.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "chk"))
        with _delivery() as delays:
            query = writer.trigger(availableNow=True).start()
            getattr(query, "_query", query).awaitTermination()
            ended = time.perf_counter()
            query.awaitTermination()
            behind = time.perf_counter() - ended
        progress = query.recentProgress
        batches = sum(int(p["durationMs"].get("triggerExecution", 0)) for p in progress) / 1000
        state = [sum(int(o["memoryUsedBytes"]) for o in p["stateOperators"]) for p in progress]
        kept = sum(p.stat().st_size for p in (folder / "prov/assertions").rglob("*.parquet"))
        shutil.rmtree(folder, ignore_errors=True)
        latency = statistics.median(delays) * 1000 if delays else None
        return Done(batches + behind, kept, max(state, default=0), latency)

    def ratios(
        self, data: Input, step: Any, operators: int, modes: Sequence[str], turns: int
    ) -> dict[str, list[tuple[Done, Done]]]:
        """Run a chain plain and in some modes, in turns; return each mode's runs beside plain."""
        order = ["plain", *modes]
        found: dict[str, list[tuple[Done, Done]]] = {mode: [] for mode in modes}
        for turn in range(turns + 1):
            done = {mode: self.run(data, step, operators, mode, "optimised") for mode in order}
            order.reverse()
            if turn:  # the first warms up
                for mode in modes:
                    found[mode].append((done["plain"], done[mode]))
        return found


def _provenance(writer: Any, mode: str, form: str, folder: Path) -> Any:
    if mode == "plain":
        return writer
    if mode == "on-the-fly":
        return writer.provenance(mode=mode, to=_hear, where="delay < 0")
    if mode == "receive":
        return writer.provenance(mode=mode, capture="keys")
    content: Any = _FORMS[form]
    return writer.provenance(str(folder / "prov"), assertions="all", content=content)


def _hear(_: Any) -> None:
    """Take a result whose delay is over a limit; none is."""


@contextmanager
def _delivery() -> Iterator[list[float]]:
    """Note how long after its rows a batch's properties are delivered."""
    written: dict[int, float] = {}
    delays: list[float] = []

    def note(step: str, batch: int) -> None:
        if step == "sink written":
            written[batch] = time.perf_counter()
        elif step == "properties delivered" and batch in written:
            delays.append(time.perf_counter() - written[batch])

    listen(note)
    try:
        yield delays
    finally:
        unlisten(note)


def storage(bench: Bench, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Figures 6.3 to 6.8: what is stored, in all and for one more step, against the prediction."""
    chains = [("storage, maps", turned, 100, (2, 5) if quick else (2, 5, 10, 15))]
    if not quick:
        chains += [("storage, maps", turned, 1000, (2, 5, 10, 15))]
        chains += [("storage, filters", passing, 100, (2, 15))]
    for experiment, step, payload, lengths in chains:
        data = write_input(_ROWS, payload, 4)
        for form in _FORMS:
            sizes: dict[int, int] = {}
            for operators in lengths:
                frame = chain(bench.spark, data, step, operators, "store")
                guess = estimate(frame.node, _ROWS)
                sizes[operators] = bench.run(data, step, operators, "store", form).stored
                yield {
                    "experiment": experiment,
                    "mode": "store",
                    "form": form,
                    "operators": operators,
                    "payload_bytes": payload,
                    "rows": _ROWS,
                    "storage_bytes": sizes[operators],
                    "predicted_bytes": round(guess.storage(form)),  # type: ignore[arg-type]
                    "marginal_storage_bytes": _slope(sizes),
                }


def _slope(sizes: dict[int, int]) -> int | None:
    """Return what one more step takes, from the shortest chain to the longest so far."""
    (low, first), (high, last) = min(sizes.items()), max(sizes.items())
    return None if high == low else round((last - first) / (high - low))


def throughput(bench: Bench, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 6.9: rates of the modes, where the plain chain is 1."""
    rows, files, turns = (40_000, 2, 1) if quick else (400_000, 8, 3)
    chains = [("throughput, maps", turned, 10, 100)]
    if not quick:
        chains += [("throughput, maps", turned, operators, 100) for operators in (2, 15)]
        chains += [
            ("throughput, maps", turned, 10, 1000),
            ("throughput, bare maps", bare, 10, 100),
        ]
    for experiment, step, operators, payload in chains:
        rows_here = rows * 4 if step is bare else rows if payload < 1000 else rows // 8
        data = write_input(rows_here, payload, files)
        # The chain that the targets are about gets one turn more.
        many = turns if (step, operators, payload) == (turned, 10, 100) else max(1, turns - 1)
        for mode, runs in bench.ratios(data, step, operators, _MODES, many).items():
            ratios = sorted(plain.seconds / other.seconds for plain, other in runs)
            yield {
                "experiment": experiment,
                "mode": mode,
                "form": "optimised" if mode == "store" else None,
                "operators": operators,
                "payload_bytes": payload,
                "rows": data.rows,
                "ratio": round(statistics.median(ratios), 3),
                "ratio_low": round(ratios[0], 3),
                "ratio_high": round(ratios[-1], 3),
                "plain_rows_per_s": round(
                    data.rows / statistics.median(plain.seconds for plain, _ in runs)
                ),
                "latency_ms": _median(other.latency for _, other in runs),
            }


def memory(bench: Bench, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Figures 6.14 to 6.17: what Spark's state holds on the fly, and how late properties are."""
    rows, files, turns = (20_000, 2, 1) if quick else (100_000, 4, 2)
    chains = [("memory and latency, maps", bare, () if quick else (2, 10))]
    chains += [("memory and latency, windows", windowed, (2,) if quick else (1, 2, 4))]
    for experiment, step, lengths in chains:
        data = write_input(rows, 100, files)
        for operators in lengths:
            runs = bench.ratios(data, step, operators, ("on-the-fly",), turns)["on-the-fly"]
            frame = chain(bench.spark, data, step, operators, "on-the-fly")
            guess = estimate(frame.node, rows, rate=1000.0, sample=2000)
            yield {
                "experiment": experiment,
                "mode": "on-the-fly",
                "operators": operators,
                "payload_bytes": 100,
                "rows": rows,
                "ratio": round(statistics.median(p.seconds / o.seconds for p, o in runs), 3),
                "memory_bytes": round(statistics.median(o.state - p.state for p, o in runs)),
                "plain_memory_bytes": round(statistics.median(p.state for p, _ in runs)),
                "predicted_bytes": round(guess.memory_bytes or 0),
                "latency_ms": _median(other.latency for _, other in runs),
            }


def _median(values: Iterator[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(statistics.median(known), 2) if known else None


PARTS = {"throughput": throughput, "storage": storage, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few rows, some chains, one turn")
    parser.add_argument("--only", choices=list(PARTS), help="one part; the others' rows stay")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write")
    options = parser.parse_args()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    began = time.perf_counter()
    others = all_cpu_seconds() - cpu_seconds()
    spark = session()
    rows: list[dict[str, Any]] = []
    try:
        about = machine(spark)
        bench = Bench(spark)
        for name, part in PARTS.items():
            if options.only in (None, name):
                for row in part(bench, quick=options.quick):
                    rows.append(row)
                    print(json.dumps(row), flush=True)
        seconds = time.perf_counter() - began
        used = (all_cpu_seconds() - cpu_seconds() - others) / seconds
        about["cores_used_by_others"] = round(max(0.0, used), 2)
    finally:
        spark.stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)
    if options.only and options.results.exists():
        before = json.loads(options.results.read_text())["rows"]
        rows = [row for row in before if not row["experiment"].startswith(options.only)] + rows
    settings = {"seed": SEED, "quick": options.quick, "minutes": round(seconds / 60, 1)}
    result = {
        "machine": about,
        "state_store": "in memory (HDFSBackedStateStoreProvider)",
        "settings": settings,
        "rows": rows,
    }
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{seconds:.0f} s; written to {options.results}")


if __name__ == "__main__":
    main()
