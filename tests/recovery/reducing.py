"""A reduction in a process of its own, which can be killed at a named step.

Run as `python reducing.py FOLDER [STEP OCCURRENCE]`: it reduces FOLDER/in into FOLDER/prov, one
file a batch, and dies by SIGKILL when the step is reached for the given time.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

STEPS = (
    "reduction begun",
    "locally reduced",
    "globally reduced",
    "reduced edges landed",
    "reduction committed",
    "reduction tidied",
)
POINTS = (*((step, nth) for nth in (1, 2, 3) for step in STEPS), ("closing begun", 1),
          ("globally reduced", 1))  # fmt: skip
"""Each step in the first batch, in the second and in the third; then while the job is closed."""


def main(folder: Path) -> None:
    import clew
    from session import make_session

    spark = make_session(folder / "scratch", cores=1)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    done = clew.prov.reduce(
        lines, job="job", store=folder / "prov", delay="20 seconds", global_batch=1, idle=0
    )
    done.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        from recovery.pipeline import kill_at

        kill_at(sys.argv[2], int(sys.argv[3]))
    main(Path(sys.argv[1]))
