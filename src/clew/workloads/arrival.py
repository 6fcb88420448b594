"""The order in which rows arrive, which need not be the order of their event times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def arrival_order(
    micros: NDArray[np.int64], out_of_order: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Order rows by arrival, each one delayed by a random time.

    A row comes after no row that is more than `out_of_order` seconds younger. So with a
    watermark delay of at least that, no row is late.

    Args:
        micros: The rows' event times.
        out_of_order: The largest delay in seconds; 0 leaves the rows in event-time order.
        rng: Where the delays come from.

    Returns:
        The rows' indices, first to arrive first. Rows that arrive together keep their order.

    Examples:
        >>> arrival_order(np.array([20, 10, 30]), 0, np.random.default_rng(1)).tolist()
        [1, 0, 2]
    """
    delays = rng.integers(0, out_of_order * 1_000_000 + 1, size=len(micros))
    return np.argsort(micros + delays, kind="stable")
