"""A running query behind which pointers are unfolded and keys recorded.

The handle is Spark's own, with two differences: waiting for the query also waits until the work on
its last batch is done, and work that failed is raised there. It runs in a thread of its own and
takes the batches of several seconds at once, since each round costs a scan: a round that took long
is followed by a longer pause.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger("clew")
_LOOK_EVERY = 0.5
"""How often, in seconds, the follower looks whether the query has ended."""
_PAUSE = 10
"""After a round, how many times as long as it took to wait at least before the next.

Rarer rounds cost less while the query runs, and leave more for the end, when nothing else runs.
Which of the two weighs more was not settled: see docs/decisions/0004-unfolding.md.
"""


class Work(Protocol):
    """What is done behind a query with the batches that it has committed."""

    @property
    def writer(self) -> str:
        """The query's stream."""

    def is_due(self) -> bool:
        """Tell whether there is anything to do."""

    def advance(self) -> int:
        """Do it, and return how much was written."""


class Follower:
    """Works on the batches of a query while it runs, and on the rest when it has ended.

    Args:
        work: What is done, one after the other.
        is_active: Tells whether the query still runs.
        every: Seconds between two rounds, at least.
    """

    def __init__(self, work: Sequence[Work], is_active: Callable[[], bool], every: float) -> None:
        self._work = tuple(work)
        self._is_active = is_active
        self._every = every
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._follow, name=f"clew-behind-{work[0].writer}", daemon=True
        )
        self._wake = threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the query has ended and all work behind it is done.

        Raises:
            ClewError: It failed; what is pending stays so until the query runs again.
        """
        self._wake.set()
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def _follow(self) -> None:
        last, pause = time.monotonic(), self._every
        while self._is_active():
            self._wake.wait(_LOOK_EVERY)
            if self._wake.is_set():
                time.sleep(0.01)  # somebody waits for the end: look often
            began = time.monotonic()
            if began - last >= pause:
                self._round()
                last = time.monotonic()
                pause = max(self._every, _PAUSE * (last - began))
        self._round()

    def _round(self) -> None:
        errors = [error for work in self._work if (error := _try(work)) is not None]
        self._error = errors[0] if errors else None


def _try(work: Work) -> Exception | None:
    try:
        if work.is_due():
            work.advance()
    except Exception as error:  # noqa: BLE001 (told to whoever waits)
        # The kind of error only: its text may hold values of rows, which no log should.
        _log.warning("work behind %s failed: %s", work.writer, type(error).__name__)
        return error
    return None


class TracedQuery:
    """Spark's `StreamingQuery`, followed by the work behind it.

    Args:
        query: Spark's own handle.
        follower: What works behind it.
        sides: The side queries of connection points.
    """

    def __init__(
        self, query: StreamingQuery, follower: Follower, sides: Sequence[StreamingQuery] = ()
    ) -> None:
        self._query = query
        self._follower = follower
        self._sides = tuple(sides)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def __repr__(self) -> str:
        return f"TracedQuery({self._query.name}, {'active' if self._query.isActive else 'ended'})"

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """Wait for the query to end, and for its last edges.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            With a timeout, whether the query has ended within it.
        """
        if timeout is None:
            self._query.awaitTermination()
            self._end_sides()
            self._follower.wait()
            return None
        began = time.monotonic()
        ended = self._query.awaitTermination(timeout)
        if not ended:
            return False
        self._end_sides()
        return self._follower.wait(max(0.0, timeout - (time.monotonic() - began)))

    def stop(self) -> None:
        """Stop the query; the work on what it committed is done before this returns."""
        self._query.stop()
        self._end_sides()
        self._follower.wait()

    def _end_sides(self) -> None:
        """Let side queries take in what is there, and end them."""
        for side in self._sides:
            if side.isActive:
                side.processAllAvailable()
                side.stop()
