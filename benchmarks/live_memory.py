"""How much memory the queries of a use case take, each time in a fresh process.

A heap that is as large as it may get from the beginning hides what a run needs, and one that has
grown does not shrink, so the timed runs cannot tell. Here a run has a process and a Java machine of
its own, with a heap that grows. What counts is the sum, over all processes, of the most memory each
of them ever had at once (`VmHWM`).

Run: python -m benchmarks.live_memory USE_CASE VARIANT STREAM PER_TRIGGER SCRATCH
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks import live_runs
from benchmarks.live_domains import DOMAINS
from benchmarks.streams import Stream

_JAVA = "-XX:ReservedCodeCacheSize=512m"


def peak_bytes(use_case: str, variant: str, stream: Stream, scratch: Path) -> int:
    """Run a use case in a process of its own; return the most memory it had."""
    command = [sys.executable, "-m", "benchmarks.live_memory", use_case, variant]
    command += [str(stream.folder), str(stream.per_trigger), str(scratch)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(scratch, ignore_errors=True)
    if said.returncode:
        raise RuntimeError(said.stderr)
    found: int = json.loads(said.stdout.splitlines()[-1])["peak_bytes"]
    return found


def _peak() -> int:
    """Add up the most memory of this process and of all below it."""
    parents: dict[int, list[int]] = defaultdict(list)
    peaks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        try:
            lines = (folder / "status").read_text().splitlines() if folder.name.isdigit() else []
        except OSError:
            continue  # it ended while we looked
        said = dict(line.split(":", 1) for line in lines if ":" in line)
        if "VmHWM" in said:
            peaks[int(folder.name)] = 1024 * int(said["VmHWM"].split()[0])
            parents[int(said["PPid"])].append(int(folder.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        waiting += parents[pid]
        total += peaks.get(pid, 0)
    return total


def main() -> None:
    from benchmarks.live import session

    use_case, variant, folder, per_trigger, scratch = sys.argv[1:]
    [domain] = [each for each in DOMAINS if each.use_case == use_case]
    stream = Stream(domain.data, Path(folder), 0, int(per_trigger))
    spark = session(Path(scratch), java=_JAVA)
    own = Path(scratch) / "run"
    if variant == "plain":
        live_runs.run_plain(live_runs.plain_frames(spark, domain, stream), own)
    else:
        engine = next(each for each in live_runs.ENGINES if each == variant)
        follow = live_runs.follow_with(spark, engine, domain.queries)
        live_runs.run_live(live_runs.traced_frames(spark, domain, stream), own, follow)
    print(json.dumps({"peak_bytes": _peak()}))
    spark.stop()


if __name__ == "__main__":
    main()
