"""Kill the process at every step of a batch: nothing is lost, nothing is doubled."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from proof.case import Outcome, Setting, check
from recovery.chain import POINTS, UNFOLDING_POINTS, holdings, make_twin, run, write_input

if TYPE_CHECKING:
    from collections.abc import Iterator


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Kill at each point in turn, restart, and compare with an undisturbed run."""
    if setting.quick:
        return  # a process for each kill; the tests have some
    calm, stormy = setting.folder / "calm", setting.folder / "stormy"
    write_input(calm, batches=len(POINTS))
    assert run(calm) == "finished"
    make_twin(calm, stormy)
    for step, nth in POINTS:

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
    yield from _unfolding(setting)


def _unfolding(setting: Setting) -> Iterator[Outcome]:
    """Kill the unfolding at each point in turn, start it again, and compare."""
    calm, stormy = setting.folder / "calm-unfolding", setting.folder / "stormy-unfolding"
    write_input(calm, batches=40)
    program = "unfolding.py"
    assert run(calm, "run", program=program) == "finished"
    # Both unfold what one run left.
    shutil.copytree(calm, stormy, ignore=shutil.ignore_patterns("in", "scratch"))
    (stormy / "in").symlink_to(calm / "in")
    assert run(calm, "unfold", program=program) == "finished"
    for step, nth in UNFOLDING_POINTS:

        def killed(step: str = step, nth: int = nth) -> str:
            said = run(stormy, "unfold", step, str(nth), program=program)
            return "" if said.startswith(f"killed at {step},") else f"it was not killed: {said}"

        yield check(f"unfolding killed at {step}, time {nth}", killed)

    def same() -> str:
        if (said := run(stormy, "unfold", program=program)) != "finished":
            return f"the last run did not finish: {said}"
        before, after = holdings(calm), holdings(stormy)
        wrong = []
        if before.edges != after.edges:
            more, less = after.edges - before.edges, before.edges - after.edges
            wrong.append(f"edges differ: {more} too much, {less} missing")
        # Groups of batches may differ, and a source row is kept once in each.
        if set(before.rows) != set(after.rows):
            wrong.append(f"rows differ: {set(after.rows) ^ set(before.rows)}")
        return "\n".join(wrong)

    yield check("after all restarts of the unfolding: edges and rows", same)
