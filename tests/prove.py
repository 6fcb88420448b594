"""The proof: answers against models, papers and real data. Last line: `N cases, M wrong`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from proof import (
    examples,
    live,
    ordered,
    points,
    processes,
    random_pipelines,
    recorded,
    reduce,
    restarts,
    workloads,
)
from proof.captures import refused
from proof.case import Setting
from session import make_session

PARTS = {
    "worked examples of the papers": examples,
    "workloads and real flights": workloads,
    "random pipelines": random_pipelines,
    "windows over rows in order": ordered,
    "recorded keys": recorded,
    "queries cut in two processes": processes,
    "connection points": points,
    "kill and restart": restarts,
    "live graphs": live,
    "reduced provenance": reduce,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a seeded sample, under 3 minutes")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", choices=sorted(PARTS), help="one part alone")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    cases = wrong = 0
    with tempfile.TemporaryDirectory(prefix="clew-proof-") as name:
        folder = Path(name).resolve()
        spark = make_session(folder)
        for title, part in PARTS.items():
            if options.only not in (None, title):
                continue
            place = folder / title.replace(" ", "-")
            place.mkdir()
            began, before = time.monotonic(), cases
            failed = 0
            print(f"{title} ...", flush=True)
            for outcome in part.outcomes(Setting(spark, place, options.quick, options.seed)):
                cases += 1
                if outcome.wrong:
                    failed += 1
                    print(f"WRONG {outcome.name}\n{outcome.wrong}\n", flush=True)
            wrong += failed
            spent = time.monotonic() - began
            print(f"{title}: {cases - before} cases, {failed} wrong, {spent:.0f} s", flush=True)
        spark.stop()
    for why, count in refused.most_common():
        print(f"refused {count} times, {why}")
    print(f"{cases} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
