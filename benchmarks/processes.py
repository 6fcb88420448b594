"""The machine, and the CPU time of this process, the JVM it started, and their workers.

Linux only: everything is read from `/proc`.
"""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Add up the CPU time of this process and all below it, also of those that have ended."""
    stats = dict(_stats())
    children: dict[int, list[int]] = defaultdict(list)
    for pid, fields in stats.items():
        children[int(fields[1])].append(pid)
    waiting, ticks = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        waiting += children[pid]
        # After the name: user and system time at 11 and 12, of children that ended at 13 and 14.
        ticks += sum(int(each) for each in stats[pid][11:15])
    return ticks / _TICKS


def _stats() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue  # it ended while we looked
        # A name may hold spaces and brackets; what follows the last bracket does not.
        yield int(folder.name), text.rpartition(")")[2].split()


def machine(spark: SparkSession) -> dict[str, Any]:
    """Say on what was measured."""
    java: Any = spark.sparkContext._jvm  # noqa: SLF001 (no other way to ask)
    memory = _value("/proc/meminfo", "MemTotal") or "0 kB"
    return {
        "cpu": _value("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory.split()[0]) / 1_048_576, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load_at_start": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        "java": str(java.System.getProperty("java.version")),
        "spark": spark.version,
    }


def _value(path: str, name: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def all_cpu_seconds() -> float:
    """Return the CPU time of everything on the machine: user, nice, system and the interrupts'."""
    first = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(int(first[i]) for i in (0, 1, 2, 5, 6)) / _TICKS
