"""Build a live graph in a process of its own, which can be killed at a named step.

Run as `python live.py FOLDER ENGINE [STEP OCCURRENCE]` over the store in FOLDER/prov. Each step
takes one batch with edges, so that there are many.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]


def main(folder: Path, engine: Any) -> None:
    import clew
    from clew.live import take

    take.MOST_EDGES = 0
    spark = None
    if engine == "native":
        from session import make_session

        spark = make_session(folder / "scratch", cores=1)
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    with clew.open(folder / "prov") as prov:
        prov.graph(name=engine, engine=engine, spark=spark).advance()
    print("finished", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        from recovery.pipeline import kill_at

        kill_at(sys.argv[3], int(sys.argv[4]))
    main(Path(sys.argv[1]), sys.argv[2])
