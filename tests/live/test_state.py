"""How far a live graph has come is read from a file that may be damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.exceptions import StoreError
from clew.expiry.horizon import Reached
from clew.live.graph_state import State

if TYPE_CHECKING:
    from pathlib import Path

OPEN = {"step": 4, "streams": {"reports": {"latest": 7, "segments": [["f", 0, 9], [None, 1, 1]]}}}


def put(folder: Path, **changes: Any) -> Path:
    state = State(
        step=5, reached={"stopped": Reached("r", 2, 60_000)}, moved={"stopped": 0.5}, open=(OPEN,)
    )
    file = folder / "live" / "live" / "steps" / "0000000005" / "_step.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**state.to_dict(), **changes}))
    return file


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = State.read(put(tmp_path))

    assert (state.step, state.open, state.moved) == (5, (OPEN,), {"stopped": 0.5})
    assert state.reached == {"stopped": Reached("r", 2, 60_000)}


@pytest.mark.parametrize(
    "changes",
    [
        {"step": "last"},
        {"labels": -1},
        {"taken": {"stopped": {"r": None}}},
        {"reached": {"stopped": {"run": "r", "batch": 2}}},
        {"moved": {"stopped": "yesterday"}},
        {"open": [{"step": 4, "streams": {"reports": {"latest": 7, "segments": [["f", 0]]}}}]},
        {"open": [{"streams": {}}]},
        {"idle": "stopped"},
        {"more": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_damaged_state_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = put(tmp_path, **changes)

    with pytest.raises(StoreError, match="_step.json"):
        State.read(file)
