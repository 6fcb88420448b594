"""The last few traces, for the questions that follow one another about the same row.

A trace is kept with the state of the store that it was read from, so after a commit, an erasure or
a pruning it is found no more.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from clew.query.trace import Trace

_ENTRIES = 16
_MAX_ROWS = 50_000
"""Larger answers are read again: they would take the memory of many small ones."""


class Traces:
    """Traces by what was asked and of which state; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: dict[Hashable, Trace] = {}

    def find(self, key: Hashable) -> Trace | None:
        """Return a trace that is kept, if it is."""
        with self._lock:
            return self._traces.get(key)

    def keep(self, key: Hashable, trace: Trace) -> None:
        """Keep a small trace, and let go of the oldest."""
        if len(trace) > _MAX_ROWS:
            return
        with self._lock:
            self._traces[key] = trace
            while len(self._traces) > _ENTRIES:
                del self._traces[next(iter(self._traces))]
