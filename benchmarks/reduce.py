"""What is left of the provenance of a job, how exactly, and how fast?

Repeats the paper's experiments on the provenance of a job that counts hashtags (`hashtags`), and
writes `benchmarks/results/reduce.json`, one row per measurement:

| experiment | what is in its rows |
|---|---|
| `accuracy` | Figure 14: share of the right edges that are there, by share of lines out of order |
| `partitioning` | Figure 16: edges that local reducers hand on, by partitioning and local batch |
| `size` | Table I: edges and bytes of all, after local reducers, after the global one |
| `speed` | Figure 15: time for one and two local reducers, and throughput |
| `memory` | memory of all processes while millions of statements pass |

`size_ratio` compares the lines that came with the files in the store. `size_ratio_text` compares
text with text: those lines, and the reduced edges written as such lines.

Run: python -m benchmarks.reduce [--quick] [--only EXPERIMENT] [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
import hashtags as real
from benchmarks import hashtags, reduce_runs
from benchmarks.processes import all_cpu_seconds, cpu_seconds, machine
from benchmarks.reduce_speed import session
from domains.disorder import disorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "reduce.json"
SCRATCH = Path("build") / "bench-reduce"
SEED = 7
_DISTANCE = 3_000
"""How many lines late a line out of order may be."""
_REDUCERS = 5
"""As many local reducers as the paper has nodes."""
_ROUND = 5_000
"""More statements than a round has, so that rounds do not overlap in time."""
_TAGS: dict[str, Any] = {"mode": "grouping", "single_use": True}

Row = dict[str, Any]


class Bench:
    """Measures.

    Args:
        spark: The session.
        folder: Where data goes.
        quick: Take less of everything.
    """

    def __init__(self, spark: SparkSession, folder: Path, *, quick: bool) -> None:
        self._spark = spark
        self._folder = folder
        self._quick = quick

    def _run(self, name: str, **settings: Any) -> reduce_runs.Run:
        return reduce_runs.run(self._spark, self._folder / name, self._folder / "store", **settings)

    def accuracy(self) -> Iterator[Row]:
        """Figure 14."""
        rounds = 2 if self._quick else 8
        shares = (0.0, 0.25, 0.5) if self._quick else (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
        right = hashtags.expected(hashtags.executions(rounds, SEED))
        methods: dict[str, tuple[Callable[..., Iterator[str]], Row]] = {
            "grouping": (hashtags.groups, {"mode": "grouping"}),
            "watermark": (
                hashtags.statements,
                {"mode": "watermark", "delay": "10 seconds", "global_batch": 5_000},
            ),
            "window": (hashtags.statements, {"mode": "window", "window": 1_000}),
        }
        for method, (publish, settings) in methods.items():
            lines = list(publish(hashtags.executions(rounds, SEED)))
            for share in shares:
                late = list(disorder(lines, share, _DISTANCE, seed=SEED))
                reduce_runs.write(self._folder / "accuracy", [late])
                found = self._run("accuracy", local_batch=10**6, **settings)
                yield {
                    "experiment": "accuracy",
                    "method": method,
                    "partitioning": "source",
                    "disorder": share,
                    "accuracy": round(len(right & found.edges) / len(right), 4),
                    "wrong_edges": len(found.edges - right),
                    "edges_in": found.progress.statements,
                    "edges_out": found.progress.edges_out,
                }

    def partitioning(self) -> Iterator[Row]:
        """Figure 16."""
        rounds, sizes = (6, (1_000, 20_000)) if self._quick else (
            60, (500, 1_000, 5_000, 20_000, 50_000))  # fmt: skip
        reduce_runs.write(
            self._folder / "tags", [hashtags.groups(hashtags.executions(rounds, SEED))]
        )
        for partitioning in ("function", "node", "random", "lineage"):
            for size in sizes:
                how: Row = {"partitioning": partitioning, "local_batch": size}
                found = self._run("tags", partitions=_REDUCERS, **how, **_TAGS)
                row = {"experiment": "partitioning", "method": "grouping", "reducers": _REDUCERS}
                yield {**row, **how, **_edges(found)}

    def size(self) -> Iterator[Row]:
        """Table I."""
        rounds = 20 if self._quick else 200
        publish = {"statements": hashtags.statements, "groups": hashtags.groups}
        for form, lines in publish.items():
            job = lines(hashtags.executions(rounds, SEED))
            size = reduce_runs.write(self._folder / "size", [job])
            how = dict(_TAGS) if form == "groups" else {"delay": "20 seconds"}
            found = self._run("size", partitioning="node", partitions=_REDUCERS, **how)
            method = "grouping" if form == "groups" else "watermark"
            yield _size(form, method, size, found)
        yield self._real_text()

    def _real_text(self) -> Row:
        """The same for a job over real text, with nothing chosen: two functions, one map a line."""
        folder = self._folder / "real"
        text = real.tweets(500 if self._quick else None)
        with clew.prov.Emitter(folder, "tags", grouped=False) as emit:
            real.count_hashtags(text, emit)
            emit.end()
        size = sum(path.stat().st_size for path in folder.iterdir())
        found = self._run("real", mode="grouping", partitioning="node", partitions=_REDUCERS)
        right = real.expected_edges(text)[real.COUNT]
        row = _size("real text", "grouping", size, found)
        return {**row, "accuracy": round(len(right & found.edges) / len(right), 4)}

    def memory(self) -> Iterator[Row]:
        """Statements in millions, and what all processes hold."""
        rounds, times = (30, 3) if self._quick else (132, 22)
        store = self._folder / "endless"
        for number in range(times):
            first = number * rounds
            job = hashtags.executions(rounds, SEED, first)
            name = self._folder / "endless-in"
            name.mkdir(exist_ok=True)
            path = name / f"{number:04d}.jsonl"
            with path.open("w") as file:
                lines = hashtags.statements(job, first * _ROUND)
                file.writelines(f"{line}\n" for line in lines)
            done = clew.prov.reduce(
                self._spark.readStream.text(str(name.absolute())),
                job="tags", store=store, delay="30 seconds", global_batch=100_000,
            )  # fmt: skip
            done.awaitTermination()
            path.unlink()
            progress = done.progress()
            yield {
                "experiment": "memory",
                "method": "watermark",
                "edges_in": progress.statements,
                "edges_out": progress.edges_out,
                "edges_open": progress.edges_open,
                "dead": progress.dead,
                "resident_mb": round(reduce_runs.resident_mb()),
                "workers_mb": round(reduce_runs.resident_mb("pyspark.daemon")),
                "heap_mb": round(reduce_runs.heap_mb(self._spark)),
            }


def _size(form: str, method: str, size: int, found: reduce_runs.Run) -> Row:
    return {
        "experiment": "size",
        "method": method,
        "form": form,
        "partitioning": "node",
        "local_batch": 20_000,
        **_edges(found),
        "bytes_in": size,
        "bytes_local": found.local_bytes,
        "bytes_out": found.text_bytes,
        "bytes_stored": found.stored_bytes,
        "size_ratio": round(size / found.stored_bytes, 2),
        "size_ratio_text": round(size / found.text_bytes, 2),
    }


def _edges(found: reduce_runs.Run) -> Row:
    progress = found.progress
    return {
        "edges_in": progress.statements,
        "edges_local": progress.edges_local,
        "edges_out": progress.edges_out,
        "edge_ratio": round(progress.statements / progress.edges_out, 2),
    }


def speed(folder: Path, *, quick: bool) -> list[Row]:
    """Figure 15, each number of cores in a process of its own."""
    rounds, turns = (10, 1) if quick else (60, 3)
    publish = {
        "groups": hashtags.groups,
        "statements": hashtags.statements,
        "documents": hashtags.documents,
    }
    for form, lines in publish.items():
        parts = (_part(lines, form, rounds, number) for number in range(4))
        reduce_runs.write(folder / form, parts)
    rows: list[Row] = []
    for cores in (1, 2):
        command = [sys.executable, "-m", "benchmarks.reduce_speed", str(cores), str(turns)]
        done = subprocess.run([*command, str(folder)], check=True, capture_output=True, text=True)
        rows += json.loads(done.stdout.strip().splitlines()[-1])
    alone = {row["form"]: row["seconds"] for row in rows if row["reducers"] == 1}
    for row in rows:
        row["speedup"] = round(alone[row["form"]] / row["seconds"], 2)
        row["partitioning"] = "source"
    return [{"experiment": "speed", **row} for row in rows]


def _part(lines: Any, form: str, rounds: int, number: int) -> Iterator[str]:
    job = hashtags.executions(rounds, SEED, rounds * number)
    if form == "documents":
        return islice(lines(job), None)
    found: Iterator[str] = lines(job, rounds * number * _ROUND)
    return found


def main() -> None:
    names = ("accuracy", "partitioning", "size", "memory", "speed")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--only", choices=names, help="one experiment")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write")
    options = parser.parse_args()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    began, others = time.perf_counter(), all_cpu_seconds() - cpu_seconds()
    rows: list[Row] = []
    try:
        if options.only in (None, "speed"):
            rows += _shown(speed(SCRATCH.absolute(), quick=options.quick))
        spark = session(2, SCRATCH.absolute())
        about = machine(spark)
        bench = Bench(spark, SCRATCH.absolute(), quick=options.quick)
        for name in names[:-1]:
            if options.only in (None, name):
                rows += _shown(getattr(bench, name)())
        spark.stop()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    seconds = time.perf_counter() - began
    used = (all_cpu_seconds() - cpu_seconds() - others) / seconds
    about["cores_used_by_others"] = round(used, 2)
    settings = {"seed": SEED, "quick": options.quick, "minutes": round(seconds / 60, 1)}
    result = {"machine": about, "settings": settings, "rows": rows}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{seconds:.0f} s, written to {options.results}")


def _shown(rows: Any) -> list[Row]:
    kept = []
    for row in rows:
        print(json.dumps(row), flush=True)
        kept.append(row)
    return kept


if __name__ == "__main__":
    main()
