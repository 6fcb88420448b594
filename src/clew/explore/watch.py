"""News of a store: a word to every open page when something was committed, erased or pruned.

One task looks at the store for all pages, and only while there are any. A page says which state it
knows, so what happened while it was away is not lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any

from clew.exceptions import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.ask.provenance import Provenance

_LOG = logging.getLogger("clew.explore")
EVERY = 0.5
"""Seconds between two looks at the store."""
PING = 15.0
"""Seconds after which a quiet connection is shown to be alive."""
_RETRY_MS = 2000


class Watcher:
    """Looks at a store for those who wait for news."""

    def __init__(self, provenance: Provenance, every: float = EVERY, ping: float = PING) -> None:
        self._provenance = provenance
        self._every = every
        self._ping = ping
        self._readers = 0
        self._news: dict[str, Any] | None = None
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def events(self, known: str | None) -> AsyncIterator[bytes]:
        """Yield news as server-sent events, for ever.

        Args:
            known: The state that the reader has seen; news begin with the next one. None if it has
                seen the present one.
        """
        yield f"retry: {_RETRY_MS}\n\n".encode()
        async with self._reading():
            news = await self._first()
            if known is None:
                known = news["state"]
                yield b": following\n\n"
            while True:
                if news["state"] != known:
                    known = news["state"]
                    yield _event(news)
                news = await self._next(known) or news
                if news["state"] == known:
                    yield b": ping\n\n"

    @contextlib.asynccontextmanager
    async def _reading(self) -> AsyncIterator[None]:
        self._readers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers and self._task is not None:
                self._task.cancel()
                self._task = None
                self._news = None

    async def _first(self) -> dict[str, Any]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._news is not None)
            assert self._news is not None
            return self._news

    async def _next(self, known: str) -> dict[str, Any] | None:
        """Wait for another state than the known one; None if there is none for a while."""

        async def wait() -> None:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: self._news is not None and self._news["state"] != known
                )

        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), self._ping)
            return self._news
        return None

    async def _look_on(self) -> None:
        while True:
            known = None if self._news is None else self._news["state"]
            news = await asyncio.to_thread(self._look, known)
            if news is not None:
                async with self._changed:
                    self._news = news
                    self._changed.notify_all()
            await asyncio.sleep(self._every)

    def _look(self, known: str | None) -> dict[str, Any] | None:
        """Look at the store; what goes wrong must not end the looking."""
        try:
            return look(self._provenance, known)
        except Exception as error:  # noqa: BLE001 (its text may hold what stands in rows)
            _LOG.error("%s while the store was looked at", type(error).__name__)
            return None


def look(provenance: Provenance, known: str | None) -> dict[str, Any] | None:
    """Return the state of a store and how far its streams are; None if it is the known one."""
    try:
        state = provenance.about().state
        if state == known:
            return None
        streams = provenance.streams()
    except ClewError:
        return None  # the next question of the page says what is wrong
    found = [each.to_dict() for each in streams]
    return {
        "state": state,
        "streams": {
            each["name"]: {
                "batches": each["batches"],
                "rows": each["sink_rows"],
                "watermark": each["watermark"],
            }
            for each in found
        },
    }


def _event(news: dict[str, Any]) -> bytes:
    return f"id: {news['state']}\nevent: commit\ndata: {json.dumps(news)}\n\n".encode()
