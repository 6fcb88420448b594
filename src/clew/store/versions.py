"""Which version of its query each batch of a stream ran with, as the store says.

A query may be changed and started again on the checkpoint that it had. What is said of a stream is
said of one version of its query: the file of the stream holds the newest as it is, and those before
it beside that, by the digest that each batch names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.store.commit import read_stream
from clew.store.layout import batches_folder, parse_batch_folder
from clew.store.said import read_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


def said_of(said: Mapping[str, Any], version: str | None) -> dict[str, Any] | None:
    """Return what is said of a stream in one version of its query; None if that is not stored.

    A commit that names no version can only mean the one that there is.
    """
    if version is None:
        return None if said.get("earlier") else dict(said)
    if version == said.get("version"):
        return dict(said)
    earlier = (said.get("earlier") or {}).get(version)
    return None if earlier is None else {**said, **earlier, "version": version}


def last_version(root: Path, stream: str, run: str) -> str | None:
    """Return the version of the last batch of a run; None if there is none, or it names none."""
    last: tuple[int, Path] | None = None
    for path in batches_folder(root, stream).glob(f"{run}-*.json"):
        name = parse_batch_folder(path.stem)
        if name is not None and name[0] == run and (last is None or name[1] > last[0]):
            last = name[1], path
    return None if last is None else read_commit(last[1]).get("version")


def versions_of(said: Mapping[str, Any]) -> list[str]:
    """List the versions of a query that a stream's file holds, the newest last."""
    newest = said.get("version")
    return [*(said.get("earlier") or {}), *([] if newest is None else [newest])]


@dataclass(frozen=True, slots=True)
class _Ran:
    """A batch: its version, what that means, and the watermark that it closed windows with."""

    number: int
    version: str | None
    meaning: str | None
    watermark_us: int
    is_stateful: bool
    clears_us: int | None


def over_a_change(
    root: Path,
    stream: str,
    run: str,
    is_vouched: Callable[[Mapping[str, Any]], bool] = lambda _: False,
) -> dict[int, str]:
    """Find the batches whose rows may hold what an earlier version of the query had gathered.

    State outlives a redeploy: a window that was open is closed by the new version, with rows that
    the old one had let in. Which those are, neither version tells. Once the watermark is so far
    that every row which the old version read has done all it ever will, batches are whole again.

    Args:
        root: The store.
        stream: The results.
        run: The run of its query.
        is_vouched: Tells whether somebody says what a version's functions do.

    Returns:
        The batches, and why each cannot be computed again.
    """
    said = read_stream(root, stream) or {}
    if len(versions_of(said)) < 2:
        return {}
    found: dict[int, str] = {}
    before: list[_Ran] = []
    clear_at: int | None = None
    changed: int | None = None
    for each in _ran(root, stream, run, said, is_vouched):
        if before and each.meaning != before[-1].meaning:
            changed = before[-1].number
            clear_at = _clear_at(each, [*before, each])
        if changed is not None and each.is_stateful:
            assert before
            if clear_at is None or before[-1].watermark_us < clear_at:
                found[each.number] = (
                    f"the query was changed after batch {changed}, and rows of this batch may rest "
                    "on what it had gathered before"
                )
        before.append(each)
    return found


def _clear_at(first: _Ran, all_of_them: Sequence[_Ran]) -> int | None:
    """Return the watermark from which on no row that was read before a change is in the state."""
    ends = [each.clears_us for each in all_of_them if each.is_stateful]
    if first.watermark_us <= 0 or None in ends:
        return None
    # No row that was read before is younger than the watermark it led to, and the delay.
    return first.watermark_us + max(end for end in ends if end is not None)


def _ran(
    root: Path,
    stream: str,
    run: str,
    said: Mapping[str, Any],
    is_vouched: Callable[[Mapping[str, Any]], bool],
) -> list[_Ran]:
    known = {version: said_of(said, version) or {} for version in versions_of(said)}
    meanings = {
        version: json.dumps([of.get("shape"), of.get("settings")], sort_keys=True)
        if of.get("functions") and is_vouched(of)
        else of.get("meaning")
        for version, of in known.items()
    }
    found = []
    for path in batches_folder(root, stream).glob("*.json"):
        name = parse_batch_folder(path.stem)
        if name is None or name[0] != run:
            continue
        commit = read_commit(path)
        version = commit.get("version")
        of = known.get(version or "") or {}
        state = of.get("state") or {}
        found.append(
            _Ran(
                name[1],
                version,
                meanings.get(version or ""),
                1000 * (commit.get("watermark_ms") or 0),
                state.get("kept", True),
                state.get("clears_us"),
            )
        )
    return sorted(found, key=lambda each: each.number)
