"""The steps of a batch, by name, so that a test can stop the process at each of them.

Whether nothing is lost and nothing doubled depends on the order of these steps alone; they are
announced here, and nobody listens unless a test does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_listeners: list[Callable[[str, int], None]] = []


def reached(step: str, batch: int) -> None:
    """Announce that a step of a batch was reached."""
    for listener in _listeners:
        listener(step, batch)


def listen(listener: Callable[[str, int], None]) -> None:
    """Call a function at each step from now on."""
    _listeners.append(listener)
