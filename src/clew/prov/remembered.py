"""What a reduction remembers from one batch to the next, and how it survives a crash.

The state is files: edges that are not final, as the last fold left them, and those that local
reducers handed on since. A commit says which files count; it is written last and appears whole. A
batch that Spark runs again finds the state of the commit before, so it does the same again. Files
that no commit needs any more are removed afterwards.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import ReduceConflictError
from clew.store.commit import put_json
from clew.store.inside import below
from clew.store.layout import quote_name, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from clew.prov.asked_for import Settings

_CLOSING = "closing.json"
_FIXED = ("mode", "single_use", "flush", "window")
"""What may not change while edges wait."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a reduction stands.

    Attributes:
        number: How many commits there were before.
        batch: The last batch of Spark's that is in it.
        input: A digest of what that batch read; None where the checkpoint does not say.
        landed: How many batches of reduced edges were handed to the store.
        latest: The latest time that a statement had, in microseconds.
        ended: Whether the job said that it has ended.
        closed: Whether everything there is was let go of.
        state: The files of the state, relative to the folder of batches.
        fresh: The files that came since the state was folded.
        open_edges: How many edges are in the state.
        fresh_edges: How many came since.
        letters: The files of dead letters and of what is kept apart, of this commit alone.
        totals: What was counted since the beginning.
    """

    number: int = -1
    batch: int = -1
    input: str | None = None
    landed: int = 0
    latest: int | None = None
    ended: bool = False
    closed: bool = True
    state: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    open_edges: int = 0
    fresh_edges: int = 0
    letters: dict[str, list[str]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)


class State:
    """The folder of one job's reduction.

    Args:
        root: The store.
        job: The job.
    """

    def __init__(self, root: Path, job: str) -> None:
        self.folder = root / "reduce" / quote_name(job)
        self.batches = self.folder / "batches"
        self.checkpoint = self.folder / "checkpoint"
        self.intake = self.folder / "intake"
        self._commits = self.folder / "commits"

    def begin(self, settings: Settings) -> str:
        """Begin or take up a reduction; return the name of its run.

        Raises:
            ReduceConflictError: It was begun with settings that do not go together with these.
        """
        path = self.folder / "reduction.json"
        try:
            known = read_json(path)
        except FileNotFoundError:
            known = {"run": uuid.uuid4().hex[:8], "settings": asdict(settings)}
            put_json(path, known)
        for name in _FIXED:
            before, now = known["settings"][name], getattr(settings, name)
            if before != now:
                raise ReduceConflictError(settings.job, name, before, now)
        return str(known["run"])

    def last(self) -> Commit:
        """Return the last commit."""
        found = sorted(self._commits.glob("[0-9]*.json"))
        return Commit(**read_json(found[-1])) if found else Commit()

    def input_of(self, batch: int) -> str | None:
        """Return the digest of what a committed batch read; None where it is not known."""
        commits = (read_json(path) for path in sorted(self._commits.glob("[0-9]*.json")))
        inputs = (each.get("input") for each in commits if each["batch"] == batch)
        return next((str(digest) for digest in inputs if digest), None)

    def fresh_folder(self, number: int) -> Path:
        """Make room for the files of a commit, without what a crash left there."""
        folder = self.batches / f"{number:010d}"
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def begin_closing(self, number: int) -> None:
        """Note that everything is being let go of, in a commit of this number."""
        put_json(self.folder / _CLOSING, {"number": number})

    def is_closing(self) -> bool:
        """Tell whether a closing was begun and never committed."""
        try:
            begun = read_json(self.folder / _CLOSING)
        except FileNotFoundError:
            return False
        return bool(begun["number"] == self.last().number + 1)

    def commit(self, done: Commit) -> None:
        """Make a commit count."""
        put_json(self._commits / f"{done.number:010d}.json", asdict(done))

    def tidy(self, done: Commit) -> None:
        """Remove files that neither a commit nor a reader of letters needs."""
        needed = {*done.state, *done.fresh}
        for folder in self.batches.glob("[0-9]*"):
            for file in folder.glob("*.parquet"):
                waits = file.name.startswith(("dead-", "apart-"))
                if not waits and f"{folder.name}/{file.name}" not in needed:
                    file.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()

    def letters(self, kind: str) -> list[Path]:
        """List the committed files of dead letters, or of what is kept apart."""
        commits: list[dict[str, Any]] = [read_json(p) for p in sorted(self._commits.glob("*.json"))]
        return [below(self.batches, f) for c in commits for f in c["letters"].get(kind, [])]
