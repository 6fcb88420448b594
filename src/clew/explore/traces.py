"""The last few traces, for the questions that follow one another about the same row.

A trace is kept with the state of the store that it was read from, so after a commit, an erasure or
a pruning it is found no more.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from clew.ask.trace import Trace

_ENTRIES = 16
_MAX_ROWS = 50_000
"""Larger answers are read again: they would take the memory of many small ones."""


class Traces:
    """Traces by what was asked and of which state; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: dict[Hashable, Trace] = {}
        self._under_way: dict[Hashable, Future[Trace]] = {}

    def get(self, key: Hashable, ask: Callable[[], Trace]) -> Trace:
        """Return a trace that is kept, else ask for it; who asks meanwhile waits for that answer.

        A page asks for an answer, its drawing and its timeline at once: one trace serves them all.
        """
        with self._lock:
            if key in self._traces:
                return self._traces[key]
            waiting = self._under_way.get(key)
            if waiting is None:
                own: Future[Trace] = Future()
                self._under_way[key] = own
        if waiting is not None:
            return waiting.result()
        try:
            trace = ask()
        except BaseException as error:
            own.set_exception(error)
            raise
        else:
            own.set_result(trace)
            self._keep(key, trace)
            return trace
        finally:
            with self._lock:
                del self._under_way[key]

    def _keep(self, key: Hashable, trace: Trace) -> None:
        """Keep a small trace, and let go of the oldest."""
        if len(trace) > _MAX_ROWS:
            return
        with self._lock:
            self._traces[key] = trace
            while len(self._traces) > _ENTRIES:
                del self._traces[next(iter(self._traces))]
