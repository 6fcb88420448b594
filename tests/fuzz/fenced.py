"""A fence around what is fuzzed: it may start no process, and use so much memory and no more.

Python tells of a process before it starts (`sys.addaudithook`); memory is limited by the system.
A hook cannot be taken away again, so it looks at a flag.
"""

from __future__ import annotations

import resource
import sys
import threading
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
_fenced = threading.local()
_is_watched = False


class ProcessStartedError(BaseException):
    """Input made clew start a process; no `except Exception` may hide it."""


def _watch(event: str, _: tuple[object, ...]) -> None:
    if event in _STARTS and getattr(_fenced, "is_on", False):
        raise ProcessStartedError(event)


@contextmanager
def fenced(memory: int = 2 << 30) -> Iterator[None]:
    """Let this thread start no process, and this process use only so many bytes more."""
    global _is_watched  # noqa: PLW0603 (hooks are for good)
    if not _is_watched:
        sys.addaudithook(_watch)
        _is_watched = True
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
    _fenced.is_on = True
    try:
        yield
    finally:
        _fenced.is_on = False
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
