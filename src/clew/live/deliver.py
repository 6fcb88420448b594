"""Deliver the elements of a step: a folder that appears whole or not at all.

The folder holds Parquet files and `_step.json`, which says how far the graph is with it. The rename
that makes it appear is the commit: what a process that died left behind has another name.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from clew.live.elements import elements_folder, graph_folder
from clew.live.graph_state import State
from clew.steps import reached
from clew.store.commit import put_json
from clew.store.private import make_folder

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

STEP = "_step.json"


def step_folder(root: Path, graph: str, step: int) -> Path:
    """Return the folder of a step."""
    return elements_folder(root, graph) / f"{step:010d}"


def draft_folder(root: Path, graph: str) -> Path:
    """Return the folder where a step is put together."""
    return graph_folder(root, graph) / "_draft"


def deliver(root: Path, graph: str, state: State, table: pa.Table) -> None:
    """Deliver the elements of a step."""
    draft = draft_folder(root, graph)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    reached("live elements made", state.step)
    pq.write_table(table, draft / "part-0.parquet", compression="zstd")
    commit_draft(root, graph, state)


def commit_draft(root: Path, graph: str, state: State) -> None:
    """Let a step that was put together appear."""
    draft = draft_folder(root, graph)
    put_json(draft / STEP, state.to_dict())
    for file in draft.glob("*.parquet"):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    reached("live step written", state.step)
    target = step_folder(root, graph, state.step)
    make_folder(target.parent)
    draft.rename(target)
    reached("live step delivered", state.step)


def steps(root: Path, graph: str) -> list[Path]:
    """List the folders of the steps that were delivered, oldest first."""
    folder = elements_folder(root, graph)
    return sorted(each for each in folder.glob("*") if each.name.isdigit())


def delivered_files(root: Path, graph: str) -> list[Path]:
    """List the files of the steps that were delivered, oldest first."""
    return [file for step in steps(root, graph) for file in sorted(step.glob("*.parquet"))]


def last_state(root: Path, graph: str) -> State:
    """Read how far the last step left a graph."""
    found = steps(root, graph)
    return State.read(found[-1] / STEP) if found else State()
