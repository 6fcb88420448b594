"""How much one question may take: seconds, memory, edges, hops.

A store may be large, or made by somebody who wishes harm, and a page in a browser asks without
being asked to. So every question runs under limits, and one that meets a limit ends with an error
that says which and how to raise it; it is never cut short in silence. Questions that a question
asks on its way share its limits. Start at `Limits`; `under` holds a question to them.
"""

from __future__ import annotations

import math
import os
import re
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.exceptions import LimitError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES_PER_EDGE = 200
"""What an edge takes while it is read, unpacked and joined."""
SMALLEST = 64 << 20
"""With less memory DuckDB cannot open a file."""

_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may take; None where there is no limit.

    Attributes:
        seconds: How long it may run. For a question that needs Spark this counts as well; Spark's
            jobs for it are cancelled then.
        memory: How many bytes DuckDB may use, beyond which it writes to disk, and how many the
            edges of an answer may take; also as a text, `"2 GB"`. Half of the machine's if left
            out.
        edges: How many edges an answer may have; by default as many as fit into `memory`, at 200
            bytes each.
        depth: How many hops an answer may go.

    Raises:
        QueryError: A limit is not a number above 0, or memory is less than 64 MB.

    Examples:
        >>> Limits(seconds=10, memory="2 GB").memory
        2147483648
    """

    seconds: float | None = 300.0
    memory: int | str | None = None
    edges: int | None = None
    depth: int | None = 1_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", _bytes_of(self.memory))
        for name in ("seconds", "memory", "edges", "depth"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                msg = f"the limit `{name}` is a number above 0, or None; got {value!r}."
                raise QueryError(msg)
        if self.bytes < SMALLEST:
            msg = f"the limit `memory` is 64 MB at least; got {self.memory!r}."
            raise QueryError(msg)

    @property
    def bytes(self) -> int:
        """How many bytes of memory a question may use."""
        return int(self.memory) if self.memory is not None else machine_memory() // 2

    @property
    def most_edges(self) -> int:
        """How many edges an answer may have."""
        return self.edges if self.edges is not None else self.bytes // BYTES_PER_EDGE


@dataclass(frozen=True, slots=True)
class _Held:
    limits: Limits
    until: float | None


_held: ContextVar[_Held | None] = ContextVar("clew_limits", default=None)


@contextmanager
def under(limits: Limits) -> Iterator[None]:
    """Hold what is done inside to limits, unless it is part of a question that is held already."""
    if _held.get() is not None:
        yield
        return
    until = None if limits.seconds is None else time.monotonic() + limits.seconds
    token = _held.set(_Held(limits, until))
    try:
        yield
    finally:
        _held.reset(token)


def current() -> Limits:
    """Return the limits of the question under way; the default ones if there is none."""
    held = _held.get()
    return Limits() if held is None else held.limits


def seconds_left() -> float | None:
    """Return how long the question under way may still run; None if there is no limit."""
    held = _held.get()
    return None if held is None or held.until is None else held.until - time.monotonic()


def check_time() -> None:
    """See that the question under way still has time.

    Raises:
        LimitError: It has none.
    """
    left = seconds_left()
    if left is not None and left <= 0:
        raise out_of_time()


def out_of_time() -> LimitError:
    """Say that the question under way took too long."""
    return LimitError(
        "seconds",
        f"{current().seconds:g} seconds",
        "ask about fewer rows or a nearer scope, or allow it more time: "
        "`clew.open(path, limits=clew.Limits(seconds=...))`, `clew --seconds N ...`",
    )


def out_of_memory() -> LimitError:
    """Say that the question under way needs more memory."""
    return LimitError(
        "memory",
        f"{current().bytes >> 20:,} MB of memory",
        "ask about fewer rows or a nearer scope, or allow it more: "
        '`clew.open(path, limits=clew.Limits(memory="8 GB"))`, `clew --memory 8GB ...`',
    )


def check_bytes(number: float) -> None:
    """See that so many bytes may be in memory.

    Raises:
        LimitError: They are too many.
    """
    if number > current().bytes:
        raise out_of_memory()


def check_edges(number: float) -> None:
    """See that so many edges may be held.

    Raises:
        LimitError: They are too many.
    """
    most = current().most_edges
    if number > most:
        raise LimitError(
            "edges",
            f"{most:,} edges",
            "ask about fewer rows or a nearer scope, or allow it more: "
            "`clew.open(path, limits=clew.Limits(edges=...))`, `clew --memory 8GB ...`",
        )


def check_depth(hops: int) -> None:
    """See that an answer may go so many hops.

    Raises:
        LimitError: They are too many.
    """
    most = current().depth
    if most is not None and hops > most:
        raise LimitError(
            "depth",
            f"{most:,} hops",
            "name a nearer scope, or allow it to go further: "
            "`clew.open(path, limits=clew.Limits(depth=...))`",
        )


def machine_memory() -> int:
    """Return the memory of this machine or container, in bytes."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        found = 4 << 30
    try:
        text = _CGROUP.read_text().strip()
    except OSError:
        return found
    return min(found, max(int(text), 2 * SMALLEST)) if text.isdigit() else found


def _bytes_of(memory: float | str | None) -> int | float | None:
    if not isinstance(memory, str):
        return memory
    found = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*([kmgt]?i?b?)\s*", memory.lower())
    unit = "" if found is None else found[2].replace("i", "")
    unit = f"{unit}b" if unit in {"k", "m", "g", "t"} else unit
    if found is None or unit not in _UNITS:
        msg = f'the limit `memory` is a number of bytes, or a text as "2 GB"; got {memory!r}.'
        raise QueryError(msg)
    return int(float(found[1]) * _UNITS[unit])
