"""What the store says of jobs: each is a writer that fills a stream of its own name.

Every job reads the stream `entities`, and that is all that is known beforehand: which entities
another job generated is found when somebody asks, since graphs of jobs arrive in any order.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreConflictError
from clew.store.commit import make_store, now, put_json, put_stream, read_stream
from clew.store.entity import COLUMN, ENTITIES, IDENTITY, is_entity
from clew.store.layout import header_file, store_root, stream_file
from clew.store.records import worst
from clew.version import __version__

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from clew.model import Exactness

_RUN = re.compile(r"[0-9a-f]{8}")
_CAPTURE = "reduced"
_RUNNING = "reduced"
_TRIES = 100
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": COLUMN, "type": "string", "nullable": False, "metadata": {}}],
}
# Reducers of several jobs may run in one process, each in a thread.
_lock = threading.Lock()


def run_name(run: str) -> str:
    """Name a run as the store does: eight hex digits, which stand for any other text.

    Examples:
        >>> run_name("3f2a90bc")
        '3f2a90bc'
        >>> run_name("application_17_0001")
        'd2a1118b'
    """
    return run if _RUN.fullmatch(run) else hashlib.sha256(run.encode()).hexdigest()[:8]


def describe_job(root: Path, job: str, run: str, exactness: Exactness = "exact") -> None:
    """Make the store if there is none, and describe a job and its run if that is not done yet.

    Args:
        root: The store.
        job: The job.
        run: The run, as `run_name` gives it.
        exactness: How its edges relate to what the job really did; the worst of all runs counts.

    Raises:
        StoreConflictError: The store has a stream of that name that is no job.
    """
    with _lock:
        _make_store(root)
        known = read_stream(root, job)
        if known is not None and any(each["run"] == run for each in known.get("runs") or ()):
            return
        _refuse_taken(job, known)
        entities = read_stream(root, ENTITIES)
        if entities is None or not is_entity(entities["identity"]):
            put_stream(root, _stream(ENTITIES, "source", writer=None))
        label = worst([exactness, *([known["exactness"]] if known else [])])
        put_stream(root, {**_job(job, run), "exactness": label})


def end_job(root: str | os.PathLike[str], job: str, run: str) -> None:
    """Note that a run of a job has ended: nothing more will be derived in it.

    Until then, `status` says of every entity that the job may use it again.

    Args:
        root: The store.
        job: The job.
        run: Its run, as given to `put_reduced`.
    """
    place, name = store_root(root), run_name(run)
    describe_job(place, job, name)
    with _lock:
        known = read_stream(place, job)
        assert known is not None
        runs = [{**r, "checkpoint": None} if r["run"] == name else r for r in known["runs"]]
        put_json(stream_file(place, job), {**known, "runs": runs})


def _make_store(root: Path) -> None:
    """Make the store; where another process is making it just now, wait for it."""
    for _ in range(_TRIES):
        if not _is_being_made(root):
            break
        time.sleep(0.05)
    make_store(root, __version__)


def _is_being_made(root: Path) -> bool:
    drafts = root.glob(f".{header_file(root).name}.*.tmp")
    return not header_file(root).exists() and any(drafts)


def _refuse_taken(job: str, known: dict[str, Any] | None) -> None:
    if job == ENTITIES or (known is not None and not is_entity(known["identity"])):
        what = "the stream of what jobs used" if known is None else f"a {known['kind']}"
        msg = (
            f"a job cannot be called `{job}`: in this store that is {what}.\n\n"
            "Give the job another name, or keep its provenance in a store of its own."
        )
        raise StoreConflictError(msg)


def _job(job: str, run: str) -> dict[str, Any]:
    runs = [{"run": run, "started": now(), "graph": None, "checkpoint": _RUNNING}]
    graph: dict[str, Any] = {"nodes": [], "sink": None, "sources": [ENTITIES], "named": {}}
    why = "events that the job published were reduced to inputs and outputs"
    return {
        **_stream(job, "sink", writer=job),
        "capture": _CAPTURE,
        "why": why,
        "runs": runs,
        "graph": graph,
    }


def _stream(name: str, kind: str, writer: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "writer": writer,
        "exactness": "exact",
        "schema": _SCHEMA,
        "identity": IDENTITY,
        "event_time": None,
    }
