"""Kill the process at steps of a batch: no row and no edge is lost or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recovery.chain import holdings, make_twin, run, write_input

if TYPE_CHECKING:
    from pathlib import Path

# The proof suite goes through every step; these are the ones between two writes.
POINTS = [("sink file published", 1), ("edges written", 2), ("batch committed", 2)]


@pytest.mark.spark
def test_killed_and_restarted_stream_holds_what_an_undisturbed_one_does(tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    write_input(calm)
    assert run(calm) == "finished"

    stormy = tmp_path / "stormy"
    make_twin(calm, stormy)
    lines = [run(stormy, step, str(nth)) for step, nth in POINTS]
    lines.append(run(stormy))

    assert [line.split(",")[0] for line in lines] == [
        *[f"killed at {step}" for step, _ in POINTS],
        "finished",
    ]
    before, after = holdings(calm), holdings(stormy)
    assert after.sink == before.sink
    assert after.edges == before.edges
    assert after.rows == before.rows
    assert max(after.edges.values()) == 1
