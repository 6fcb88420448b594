"""What recording costs, as formulas: storage and memory, in all and for one more step.

The symbols are those of the thesis's Tables 6.1 and 6.2. Sizes are in bytes. They hold for streams
that have the same sizes and numbers of rows; `clew.again.estimate` takes each stream by
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Form = Literal["optimised", "unoptimised"]
"""Content of first inputs only, or of every stream."""


def storage_cost(
    form: Form,
    *,
    key: float,
    content: float,
    rows: float,
    first: int,
    intermediate: int,
) -> float:
    """Return how much is stored.

    Args:
        form: Whether the content of intermediate rows is kept.
        key: The size of a key (k).
        content: The size of a row's content (e).
        rows: How many rows each stream has (m).
        first: How many streams are first inputs (fs).
        intermediate: How many streams lie between steps, or behind the last (is).

    Examples:
        >>> storage_cost("unoptimised", key=50, content=100, rows=10, first=1, intermediate=9)
        15000
        >>> storage_cost("optimised", key=50, content=100, rows=10, first=1, intermediate=9)
        6000
    """
    if form == "unoptimised":
        return (key + content) * rows * (first + intermediate)
    return (key + content) * rows * first + key * rows * intermediate


def storage_saved(
    *, key: float, content: float, rows: float, first: int, intermediate: int
) -> float:
    """Return how much of the storage is saved by not keeping intermediate content, in percent.

    Examples:
        >>> storage_saved(key=50, content=100, rows=10, first=1, intermediate=9)
        60.0
    """
    sizes = {"key": key, "content": content, "rows": rows}
    whole = storage_cost("unoptimised", **sizes, first=first, intermediate=intermediate)
    small = storage_cost("optimised", **sizes, first=first, intermediate=intermediate)
    return (whole - small) / whole * 100


def marginal_storage(form: Form, *, key: float, content: float, rows: float) -> float:
    """Return how much one more step stores.

    Examples:
        >>> marginal_storage("optimised", key=50, content=100, rows=100_000)
        5000000
    """
    return (key + content) * rows if form == "unoptimised" else key * rows


def memory_cost(
    *, initial: float, engine: float, queue: float, assertion: float, windows: Sequence[float]
) -> float:
    """Return how much memory on-the-fly queries take.

    Args:
        initial: What is taken when nothing is asked.
        engine: What the machinery for questions takes by itself (EP).
        queue: How many rows wait to be worked on (Q).
        assertion: The size of what is kept of a row (AS).
        windows: For each step, how many rows it keeps (w).

    Examples:
        Two windows over 10 and 20 rows:

        >>> memory_cost(initial=1000, engine=200, queue=5, assertion=8, windows=[10, 20])
        1480
    """
    return initial + engine + queue * assertion + sum(windows) * assertion


def marginal_memory(
    *, initial: float, engine: float, queue: float, assertion: float, windows: Sequence[float]
) -> float:
    """Return how much memory one more step takes, on average over the steps after the first.

    Examples:
        >>> marginal_memory(initial=0, engine=0, queue=0, assertion=8, windows=[10, 20, 30])
        200.0
    """
    sizes = {"initial": initial, "engine": engine, "queue": queue, "assertion": assertion}
    steps = len(windows)
    if steps < 2:
        return 0.0
    one = memory_cost(**sizes, windows=windows[:1])
    return (memory_cost(**sizes, windows=windows) - one) / (steps - 1)
