"""Kill the process at every step of a batch: nothing is lost, nothing is doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.case import Outcome, Setting, check
from recovery.chain import POINTS, holdings, run, write_input

if TYPE_CHECKING:
    from collections.abc import Iterator


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Kill at each point in turn, restart, and compare with an undisturbed run."""
    points = POINTS[8:9] if setting.quick else POINTS
    calm, stormy = setting.folder / "calm", setting.folder / "stormy"
    write_input(calm, batches=8 if setting.quick else len(POINTS))
    stormy.mkdir()
    (stormy / "in").symlink_to(calm / "in")
    assert run(calm) == "finished"
    for step, nth in points:

        def killed(step: str = step, nth: int = nth) -> str:
            said = run(stormy, step, str(nth))
            return "" if said.startswith(f"killed at {step},") else f"it was not killed: {said}"

        yield check(f"killed at {step}, time {nth}", killed)

    def same() -> str:
        if (said := run(stormy)) != "finished":
            return f"the last run did not finish: {said}"
        before, after = holdings(calm), holdings(stormy)
        wrong = [
            f"{part} differ: {dict(getattr(after, part) - getattr(before, part))} too much, "
            f"{dict(getattr(before, part) - getattr(after, part))} missing"
            for part in ("sink", "edges", "rows", "batches")
            if getattr(before, part) != getattr(after, part)
        ]
        return "\n".join(wrong)

    yield check("after all restarts: sink, edges, rows and batches", same)
