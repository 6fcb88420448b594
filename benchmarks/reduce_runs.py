"""Reduce one body of provenance once, and say what came of it."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
from benchmarks.processes import cpu_seconds
from clew import steps
from clew.prov.land import landed_edges, landed_files
from clew.prov.remembered import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from clew.prov.reducing import Progress


@dataclass(frozen=True)
class Run:
    """What a reduction took and left.

    Attributes:
        seconds: From the start of the query to the last commit.
        cpu: CPU seconds of this process, the JVM and its workers.
        progress: What was counted.
        local_bytes: The files that local reducers handed on.
        stored_bytes: The files in the store.
        text_bytes: The reduced edges, as lines of PROV.
        edges: The reduced edges, if they are few.
    """

    seconds: float
    cpu: float
    progress: Progress
    local_bytes: int
    stored_bytes: int
    text_bytes: int
    edges: set[tuple[str, str]]


def write(folder: Path, files: Iterable[Iterable[str]]) -> int:
    """Write lines as files; return their bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, lines in enumerate(files):
        with (folder / f"{number:04d}.jsonl").open("w") as file:
            file.writelines(f"{line}\n" for line in lines)
    return sum(path.stat().st_size for path in folder.iterdir())


def run(spark: SparkSession, folder: Path, store: Path, **settings: Any) -> Run:
    """Reduce a folder into a new store."""
    shutil.rmtree(store, ignore_errors=True)
    batches, local = State(store.absolute(), "tags").batches, list[int]()

    def look(step: str, _: int) -> None:
        if step == "locally reduced":
            local.append(sum(p.stat().st_size for p in batches.rglob("edges-*.parquet")))

    steps.listen(look)
    cpu, clock = cpu_seconds(), time.perf_counter()
    try:
        lines = spark.readStream.text(str(folder.absolute()))
        done = clew.prov.reduce(lines, job="tags", store=store, idle=0, spark=spark, **settings)
        done.awaitTermination()
    finally:
        steps.unlisten(look)
    seconds, cpu = time.perf_counter() - clock, cpu_seconds() - cpu
    root = store.absolute()
    stored = sum(os.path.getsize(p) for p in landed_files(root, "tags"))  # noqa: PTH202
    edges = landed_edges(root, "tags")
    rows = list(zip(edges["output"].to_pylist(), edges["input"].to_pylist(), strict=True))
    text = sum(len(_LINE) + len(o) + len(i) for o, i in rows)
    return Run(seconds, cpu, done.progress(), sum(local), stored, text, set(rows))


_LINE = '{"prov": "wasDerivedFrom", "generatedEntity": "", "usedEntity": "", "job": "tags"}\n'


def heap_mb(spark: SparkSession) -> float:
    """Return what is alive on the driver's heap.

    The process itself holds more: Java keeps what it once got from the system.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 (Spark has no other way to its heap)
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def resident_mb(pattern: str = "") -> float:
    """Add up the memory of this process and all below it whose command holds a text."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        total += _pages(pid, pattern)
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


def _pages(pid: int, pattern: str) -> int:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return own if pattern in command else 0
