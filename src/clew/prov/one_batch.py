"""One batch of a reduction: local reducers, global reducer, the store, the commit.

Spark hands over each batch at least once. What a batch writes is found through its commit only,
and everything it does follows from its lines and the commit before, so a batch that runs again
replaces what it left.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreConflictError
from clew.prov import end_job
from clew.prov.land import land
from clew.prov.partition import reduce_locally
from clew.prov.reducer import Rule
from clew.prov.worker import NOTE, Fold, Local
from clew.sources.state import input_digest
from clew.steps import reached

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from clew.model import Exactness
    from clew.prov.asked_for import Settings
    from clew.prov.remembered import Commit, State

_SUMS = ("bytes", "statements", "filtered", "foreign", "dead", "late", "local")


class Batches:
    """Reduces batches.

    Args:
        spark: The session.
        root: The store.
        state: The state of the job's reduction.
        settings: What was asked for.
        run: The name of this reduction.
        checkpoint: Where Spark keeps how far it has read.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        state: State,
        settings: Settings,
        run: str,
        checkpoint: str,
    ) -> None:
        self._spark = spark
        self._root = root
        self._state = state
        self._settings = settings
        self._run = run
        self._checkpoint = checkpoint

    def take(self, lines: DataFrame, batch: int) -> None:
        """Reduce a batch of lines, unless that was done before a crash."""
        before = self._state.last()
        planned = input_digest(self._checkpoint, batch)
        if batch <= before.batch:
            self._refuse_other_input(batch, planned)
            return
        if batch > before.batch + 1:
            what = f"batches {before.batch + 1} to {batch - 1} were not reduced here"
            raise self._conflict(what)
        reached("reduction begun", batch)
        number = before.number + 1
        folder = self._state.fresh_folder(number)
        local = Local(self._settings, str(folder), before.latest)
        value = next((c for c in lines.columns if c == "value"), lines.columns[0])
        notes = reduce_locally(lines.select(value), local).collect()
        reached("locally reduced", batch)
        done = replace(_after(before, batch, *_summed(notes)), input=planned)
        if self._is_due(done):
            done = self._fold(done, folder, end=False)
        self._commit(done, folder)

    def _refuse_other_input(self, batch: int, planned: str | None) -> None:
        """Refuse a batch whose number is taken by one that read something else.

        Raises:
            StoreConflictError: It would be skipped, and its lines would be lost.
        """
        known = self._state.input_of(batch)
        if None not in (known, planned) and known != planned:
            what = f"batch {batch} was reduced already, with other lines"
            raise self._conflict(what)

    def _conflict(self, what: str) -> StoreConflictError:
        return StoreConflictError(
            f"the checkpoint `{self._checkpoint}` is not the one that the reduction of "
            f"`{self._settings.job}` in `{self._root}` has come to: {what}. It is another one, or "
            "one of the two was restored from a backup. The reduction stops before lines are "
            "lost.\n\nGo on with the checkpoint and the store of the same moment, or reduce under "
            "the name of another job."
        )

    def recover(self) -> None:
        """Finish a closing that a crash cut off, before anything new can become part of it.

        Its edges may be in the store under their number already, and a number has one meaning.
        """
        if self._state.is_closing():
            self.close()

    def close(self) -> None:
        """Let go of everything: nothing more comes."""
        before = self._state.last()
        if before.closed:
            end_job(self._root, self._settings.job, self._run)
            return
        folder = self._state.fresh_folder(before.number + 1)
        done = replace(before, number=before.number + 1, letters={})
        self._state.begin_closing(done.number)
        reached("closing begun", done.number)
        done = self._fold(done, folder, end=True)
        self._commit(replace(done, closed=True), folder)
        end_job(self._root, self._settings.job, self._run)

    def _is_due(self, done: Commit) -> bool:
        ours = self._settings
        if ours.mode == "grouping" and not ours.single_use and not ours.flush:
            return False  # nothing may go before the end
        least = ours.global_batch
        if ours.mode == "grouping" and not ours.flush:
            # The state grows to the end, so it is folded less and less often.
            least = max(least, done.open_edges)
        return done.fresh_edges >= least

    def _fold(self, done: Commit, folder: Path, *, end: bool) -> Commit:
        ours = self._settings
        fold = Fold(
            Rule(
                ours.single_use,
                watermark=ours.watermark(done.latest),
                end=end,
                flush=ours.flush,
            ),
            str(self._state.batches),
            tuple(done.state),
            tuple(done.fresh),
            str(folder),
            ours.window if ours.mode == "window" else None,
        )
        notes = self._spark.range(0, 1, 1, 1).mapInArrow(fold.run, NOTE).collect()
        counts, files = _summed(notes)
        reached("globally reduced", done.batch)
        landed = self._land(done, files.get("final", []))
        totals = Counter(done.totals) + Counter(out=counts["out"])
        return replace(
            done,
            landed=landed,
            state=files.get("open", []),
            fresh=[],
            open_edges=counts["open"],
            fresh_edges=0,
            totals=dict(totals),
        )

    def _land(self, done: Commit, final: list[str]) -> int:
        if not final:
            return done.landed
        paths = [self._state.batches / name for name in final]
        # A window of fixed length forgets what it may still need: such edges are a guess.
        exactness: Exactness = "coarse" if self._settings.mode == "window" else "exact"
        job = self._settings.job
        land(self._spark, self._root, job, self._run, done.landed, paths, exactness)
        reached("reduced edges landed", done.batch)
        return done.landed + 1

    def _commit(self, done: Commit, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._state.commit(done)
        reached("reduction committed", done.batch)
        self._state.tidy(done)
        reached("reduction tidied", done.batch)


def _summed(notes: Iterable[Row]) -> tuple[Counter[str], dict[str, list[str]]]:
    """Add up what tasks counted, and list the files they wrote."""
    counts: Counter[str] = Counter()
    files: dict[str, list[str]] = {}
    latest: list[int] = []
    for row in notes:
        said: dict[str, Any] = json.loads(row["note"])
        latest += [said["counts"].pop("latest")] if "latest" in said["counts"] else []
        counts.update(said["counts"])
        for kind, names in said["files"].items():
            files.setdefault(kind, []).extend(names)
    if latest:
        counts["latest"] = max(latest)
    return counts, files


def _after(before: Commit, batch: int, counts: Counter[str], files: dict[str, list[str]]) -> Commit:
    times = [t for t in (before.latest, counts.get("latest")) if t is not None]
    totals = Counter(before.totals) + Counter({name: counts[name] for name in _SUMS})
    return replace(
        before,
        number=before.number + 1,
        batch=batch,
        latest=max(times, default=None),
        ended=before.ended or counts["ended"] > 0,
        closed=False,
        fresh=[*before.fresh, *files.get("edges", [])],
        fresh_edges=before.fresh_edges + counts["local"],
        letters={kind: files.get(kind, []) for kind in ("dead", "apart") if files.get(kind)},
        totals=dict(totals),
    )
