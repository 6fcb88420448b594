"""The same case under the captures that compute provenance afterwards.

One run with pointers serves two: its pointers are unfolded, and the spans that come along with them
are replayed. A case that a capture refuses is no case of that capture; why is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from clew.again.choose import choose
from clew.exceptions import CaptureRefusedError
from clew.testing import Traced, keyed_traces, replayed_traces, unfolded_traces
from proof.case import Outcome, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    import clew

refused: Counter[str] = Counter()
"""Why captures were refused, over all cases."""


def refusal(frame: clew.TracedFrame, capture: Any) -> str:
    """Say why a capture refuses a pipeline; empty if it takes it."""
    try:
        choose(frame.node, capture)
    except CaptureRefusedError as error:
        return f"{capture}: {error.why}"
    return ""


def lazy_outcomes(
    name: str,
    frame: clew.TracedFrame,
    run: Callable[[], pa.Table],
    wrong: Callable[[list[Traced]], str],
    checkpoint: Path | None = None,
) -> Iterator[Outcome]:
    """Check a case with pointers, with intervals and with keys.

    Args:
        name: What the case is called.
        frame: The pipeline.
        run: Returns its rows with pointers; not called if pointers are refused.
        wrong: Says what is wrong with an answer.
        checkpoint: Where the run's checkpoint is, if it is a stream.
    """
    why = refusal(frame, "pointers")
    if why:
        refused[why] += 1
        return
    rows: list[pa.Table] = []

    def unfold() -> str:
        rows.append(run())
        return wrong(unfolded_traces(frame, rows[0], checkpoint))

    def replay() -> str:
        return wrong(replayed_traces(frame, rows[0], checkpoint))

    yield check(f"{name}, pointers", unfold)
    why = refusal(frame, "intervals")
    if why or not rows:
        refused[why] += 1
        return
    yield check(f"{name}, intervals", replay)
    yield check(f"{name}, keys", lambda: wrong(keyed_traces(frame, rows[0], checkpoint)))
