"""The proof: answers against models, papers and real data. Last line: `N cases, M wrong`.

Parts run side by side, two at a time: planning a query keeps one core busy and leaves the other
idle. The longest come first, so that no process waits long for the last.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from proof import (
    examples,
    live,
    moved_sources,
    ordered,
    points,
    processes,
    random_pipelines,
    recorded,
    redeploys,
    reduce,
    restarts,
    types_and_settings,
    workloads,
)
from proof.captures import refused
from proof.case import Setting
from session import make_session

PARTS = {
    "worked examples of the papers": examples,
    "workloads and real flights": workloads,
    "types and settings": types_and_settings,
    "random pipelines": random_pipelines,
    "windows over rows in order": ordered,
    "recorded keys": recorded,
    "queries cut in two processes": processes,
    "connection points": points,
    "kill and restart": restarts,
    "sources that change": moved_sources,
    "redeploys": redeploys,
    "live graphs": live,
    "reduced provenance": reduce,
}


JOBS = 2
"""How many parts run at once, each in a process with a session of its own."""

_here: dict[str, Any] = {}


@dataclass(frozen=True)
class Tally:
    """What came out of one part."""

    title: str
    cases: int
    wrong: int
    seconds: float
    refused: Counter[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a seeded sample, under 5 minutes")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", choices=sorted(PARTS), help="one part alone")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    tallies: list[Tally] = []
    titles = list(PARTS) if options.only is None else [options.only]
    # Spark ends with its process, and may still be clearing up behind itself.
    scratch = tempfile.TemporaryDirectory(prefix="clew-proof-", ignore_cleanup_errors=True)
    with scratch as name, _pool(Path(name), long=not options.quick) as pool:
        parts = [pool.submit(_prove, title, options.quick, options.seed) for title in titles]
        for part in as_completed(parts):
            tally = part.result()
            tallies.append(tally)
            print(
                f"{tally.title}: {tally.cases} cases, {tally.wrong} wrong, {tally.seconds:.0f} s",
                flush=True,
            )
    for why, count in sum((t.refused for t in tallies), Counter[str]()).most_common():
        print(f"refused {count} times, {why}")
    cases, wrong = sum(t.cases for t in tallies), sum(t.wrong for t in tallies)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{cases} cases, {wrong} wrong")
    return 1 if wrong else 0


def _pool(folder: Path, *, long: bool) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        JOBS, get_context("spawn"), initializer=_start, initargs=(folder.resolve(), long)
    )


def _start(folder: Path, long: bool) -> None:
    """Start the session of one process; cases share it."""
    own = folder / f"process-{os.getpid()}"
    own.mkdir()
    _here.update(folder=own, spark=make_session(own, long=long))


def _prove(title: str, quick: bool, seed: int) -> Tally:
    place = _here["folder"] / title.replace(" ", "-")
    place.mkdir()
    print(f"{title} ...", flush=True)
    began, cases, wrong = time.monotonic(), 0, 0
    refused.clear()
    try:
        for outcome in PARTS[title].outcomes(Setting(_here["spark"], place, quick, seed)):
            cases += 1
            if outcome.wrong:
                wrong += 1
                print(f"WRONG {outcome.name}\n{outcome.wrong}\n", flush=True)
    except Exception:
        # Spark's own errors do not survive the way to the other process: say it here.
        cases, wrong = cases + 1, wrong + 1
        print(
            f"WRONG {title}: it ended after {cases - 1} cases\n{traceback.format_exc()}", flush=True
        )
    return Tally(title, cases, wrong, time.monotonic() - began, Counter(refused))


if __name__ == "__main__":
    sys.exit(main())
