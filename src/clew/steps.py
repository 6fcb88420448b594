"""The steps of a batch, by name, for those who wait for one.

Whether nothing is lost and nothing doubled depends on the order of these steps alone, so tests stop
the process at each of them. A live graph in the same process wakes up at those that finish
something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_listeners: list[Callable[[str, int], None]] = []


def reached(step: str, batch: int) -> None:
    """Announce that a step of a batch was reached."""
    for listener in tuple(_listeners):
        listener(step, batch)


def listen(listener: Callable[[str, int], None]) -> None:
    """Call a function at each step from now on."""
    _listeners.append(listener)


def unlisten(listener: Callable[[str, int], None]) -> None:
    """Call a function no more."""
    _listeners.remove(listener)
