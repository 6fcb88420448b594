"""Why edges of a batch cannot be computed, noted in the store where answers find it.

The batch stays pending: a source may be put back, or a pipeline handed in, and then the note goes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.store.commit import Unfolded, commit_unfolded
from clew.store.layout import unfolded_folder, unfolding_folder
from clew.store.said import read_unfolding

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from clew.exceptions import ReplayError


def note_gap(root: Path, writer: str, run: str, batch: int, why: str) -> None:
    """Say why a batch has no edges; what was said of it before is taken back."""
    part = hashlib.sha256(why.encode()).hexdigest()[:8]
    noted = unfolded_folder(root, writer) / f"{unfolding_folder(run, batch, part)}.json"
    if noted.exists():
        return
    drop_notes(root, writer, run, [batch])
    commit_unfolded(root, Unfolded(writer, run, batch, batch, part, gap=why))


def change_of(error: ReplayError) -> str:
    """Say in a line why edges could not be computed."""
    return str(getattr(error, "change", None) or str(error).partition("\n")[0])


def drop_notes(root: Path, writer: str, run: str, batches: Iterable[int]) -> None:
    """Take back what was said of batches that have edges now."""
    for each in batches:
        name = unfolding_folder(run, each, "*")
        for path in unfolded_folder(root, writer).glob(f"{name}.json"):
            if read_unfolding(path).get("gap"):
                path.unlink(missing_ok=True)
