"""What a store is and how much it holds, and a text that changes whenever it does.

The text lets whoever follows a store tell whether an earlier answer is still the newest. It
follows from the names of what is committed and from what was erased, so it is the same for every
reader of the same state.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew import show
from clew.upkeep.erase import ERASED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.store.reader import Snapshot, Store


@dataclass(frozen=True, repr=False)
class About:
    """A store as a whole.

    Attributes:
        path: Its folder.
        format: The number of its format.
        version: The version of clew that made it.
        streams: How many streams it has.
        batches: How many batches are committed.
        edges: How many edges they and what was unfolded of them hold.
        state: A text that is another one after each commit, erasure or pruning.
        committed: When something was last committed, as text in UTC; None if nothing was yet.
    """

    path: str
    format: int
    version: str | None
    streams: int
    batches: int
    edges: int
    state: str
    committed: str | None

    @property
    def name(self) -> str:
        """The name of the store's folder."""
        return self.path.rstrip("/").rpartition("/")[2]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return {
            "path": self.path,
            "name": self.name,
            "format": self.format,
            "version": self.version,
            "streams": self.streams,
            "batches": self.batches,
            "edges": self.edges,
            "state": self.state,
            "committed": self.committed,
        }

    def lines(self) -> list[show.Line]:
        """Show the answer as a sentence and a few notes."""
        said = [show.count(self.streams, "stream"), show.count(self.batches, "batch")]
        said.append(show.count(self.edges, "edge"))
        return [
            show.Line("headline", show.escape(f"{self.path}: {show.listing(said)}")),
            show.Line("note", f"format {self.format}, made by clew {self.version or 'unknown'}"),
            show.Line("note", f"last commit: {self.committed or 'none yet'}"),
        ]

    def __repr__(self) -> str:
        return show.join(self.lines())


def describe_store(store: Store) -> About:
    """Bring together what a store says of itself and what is committed now."""
    snapshot = store.snapshot()
    parts = [each for writer in snapshot.batches for each in snapshot.parts(writer)]
    made_by = store.header.get("clew")
    return About(
        path=str(store.root),
        format=int(store.header["format"]),
        version=None if made_by is None else str(made_by),
        streams=len(snapshot.streams),
        batches=sum(len(found) for found in snapshot.batches.values()),
        edges=sum(each.edges or 0 for each in parts),
        state=state_of(snapshot),
        committed=max((each.committed for each in parts), default=None),
    )


def state_of(snapshot: Snapshot) -> str:
    """Name a state of a store: the same text for the same commits and erasures."""
    digest = hashlib.sha256(snapshot.digest.encode())
    for erased in _erasures(snapshot.root):
        digest.update(erased.encode())
    return digest.hexdigest()[:16]


def _erasures(root: Path) -> Iterator[str]:
    """Yield what tells the erasures of each stream from those before."""
    try:
        with os.scandir(root / ERASED) as found:
            folders = sorted(found, key=lambda each: each.name)
    except FileNotFoundError:
        return
    for each in folders:
        yield f"{each.name} {each.stat().st_mtime_ns}\n"
