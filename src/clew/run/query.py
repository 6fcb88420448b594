"""A running query whose pointers are unfolded behind it.

The handle is Spark's own, with two differences: waiting for the query also waits until the edges of
its last batch are stored, and an unfolding that failed is raised there. Unfolding runs in a thread
of its own and takes the batches of several seconds at once, since each round costs a scan: a round
that took long is followed by a longer pause.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.streaming.query import StreamingQuery

    from clew.unfold.stage import Stage

_log = logging.getLogger("clew")
_LOOK_EVERY = 0.5
"""How often, in seconds, the follower looks whether the query has ended."""
_PAUSE = 10
"""After a round, how many times as long as it took to wait at least before the next.

Rarer rounds cost less while the query runs, and leave more for the end, when nothing else runs.
Which of the two weighs more was not settled: see docs/decisions/0004-unfolding.md.
"""


class Follower:
    """Unfolds the batches of a query while it runs, and the rest when it has ended.

    Args:
        stage: What unfolds.
        is_active: Tells whether the query still runs.
        every: Seconds between two rounds, at least.
    """

    def __init__(self, stage: Stage, is_active: Callable[[], bool], every: float) -> None:
        self._stage = stage
        self._is_active = is_active
        self._every = every
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._follow, name=f"clew-unfold-{stage.writer}", daemon=True
        )
        self._wake = threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the query has ended and all is unfolded.

        Raises:
            ClewError: An unfolding failed; what is pending stays so until the query runs again.
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
        try:
            if self._stage.pending() or self._stage.has_points:
                self._stage.unfold()
            self._error = None
        except Exception as error:  # noqa: BLE001 (told to whoever waits)
            # The kind of error only: its text may hold values of rows, which no log should.
            _log.warning("unfolding %s failed: %s", self._stage.writer, type(error).__name__)
            self._error = error


class TracedQuery:
    """Spark's `StreamingQuery`, followed by its unfolding.

    Args:
        query: Spark's own handle.
        follower: What unfolds behind it.
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
        """Stop the query; what it committed is unfolded before this returns."""
        self._query.stop()
        self._end_sides()
        self._follower.wait()

    def _end_sides(self) -> None:
        """Let side queries take in what is there, and end them."""
        for side in self._sides:
            if side.isActive:
                side.processAllAvailable()
                side.stop()
