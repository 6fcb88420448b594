"""Searches that take a while: begun, watched and stopped by separate requests.

A search replays a query with Spark, which needs the machine, so there is one at a time. What has
ended is kept for those who still ask, up to a number.
"""

from __future__ import annotations

import logging
import secrets
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from clew.exceptions import ClewError
from clew.explore.failures import RefusedError, error_of

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger("clew.explore")
_KEPT = 20

State = Literal["running", "done", "stopped", "failed"]


class Found(Protocol):
    """What a search ends with."""

    @property
    def complete(self) -> bool:
        """Whether it came to its end."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        ...


@dataclass(slots=True)
class Job:
    """A search.

    Attributes:
        name: What it is known by.
        state: How it is.
        done: How many tests are done.
        tests: How many are known to be needed.
        of: How many rows it began with; None until that is known.
        size: How many rows the smallest set has that was found.
        answer: What it found.
        error: Why it failed.
    """

    name: str
    state: State = "running"
    done: int = 0
    tests: int = 0
    of: int | None = None
    size: int | None = None
    answer: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def note(self, done: int, tests: int, size: int) -> None:
        """Keep how far the search is."""
        self.of = size if self.of is None else max(self.of, size)
        self.done, self.tests, self.size = done, tests, size

    def stop(self) -> None:
        """Ask the search to end."""
        self._stop.set()

    def is_stopped(self) -> bool:
        """Tell whether the search was asked to end."""
        return self._stop.is_set()

    def run(self, search: Callable[[Job], Found]) -> None:
        """Search, and keep what comes of it."""
        try:
            found = search(self)
        except ClewError as error:
            self.error, self.state = error_of(error), "failed"
        except Exception as error:  # noqa: BLE001 (whatever Spark raises, the page is told)
            # Its text may hold what stands in rows.
            _LOG.error("%s while a minimal cause was searched", type(error).__name__)
            self.error = {
                "code": "internal",
                "message": f"the search failed: {type(error).__name__}.",
                "hint": "`clew minimize` shows all of it.",
            }
            self.state = "failed"
        else:
            self.answer = found.to_dict()
            self.of, self.size = self.answer["of"], len(self.answer["rows"])
            self.state = "done" if found.complete else "stopped"

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain data that JSON can hold."""
        return {
            "job": self.name,
            "state": self.state,
            "done": self.done,
            "tests": self.tests,
            "of": self.of,
            "size": self.size,
            "answer": self.answer,
            "error": self.error,
        }


class Jobs:
    """The searches of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def begin(self, search: Callable[[Job], Found]) -> Job:
        """Begin a search.

        Raises:
            RefusedError: Another one is running.
        """
        with self._lock:
            if any(each.state == "running" for each in self._jobs.values()):
                text = "another search is running.\n\nStop it, or wait until it is done."
                raise RefusedError(409, "busy", text)
            job = Job(secrets.token_hex(8))
            self._jobs[job.name] = job
            for name in list(self._jobs)[:-_KEPT]:
                del self._jobs[name]
        # A daemon: whoever ends the server does not wait for Spark.
        threading.Thread(target=job.run, args=(search,), daemon=True).start()
        return job

    def find(self, name: str) -> Job:
        """Return a search by its name.

        Raises:
            RefusedError: There is no such search.
        """
        job = self._jobs.get(name)
        if job is None:
            text = "there is no such search, or it ended long ago.\n\nBegin it again."
            raise RefusedError(404, "unknown_job", text)
        return job
