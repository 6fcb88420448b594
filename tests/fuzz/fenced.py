"""A fence around what is fuzzed: it may start no process, and use so much memory and no more.

Python tells of a process before it starts (`sys.addaudithook`); memory is limited by the system.
A hook cannot be taken away again, so it looks at a flag. It is one for all threads, since clew has
threads of its own; what is raised in them may be lost, so what was started is noted, too.
"""

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STARTS = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "os.startfile",
        "pty.spawn",
    }
)
_started: list[str] = []
_is_watched = _is_on = False


class ProcessStartedError(BaseException):
    """Input made clew start a process; no `except Exception` may hide it."""


def _watch(event: str, _: tuple[object, ...]) -> None:
    if _is_on and event in _STARTS:
        _started.append(event)
        raise ProcessStartedError(event)


@contextmanager
def fenced(memory: int = 2 << 30) -> Iterator[None]:
    """Let no process be started, and this process use only so many bytes more.

    Raises:
        ProcessStartedError: One was, in whichever thread.
    """
    global _is_on, _is_watched  # noqa: PLW0603 (hooks are for good)
    if not _is_watched:
        sys.addaudithook(_watch)
        _is_watched = True
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
    _started.clear()
    _is_on = True
    try:
        yield
    finally:
        _is_on = False
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    if _started:
        raise ProcessStartedError(*_started)
