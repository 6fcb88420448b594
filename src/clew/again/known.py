"""The pipelines of this process, by the store and stream that they fill.

A store knows what a query was, in words; to compute something again, the query itself is needed.
Where the query was written in this process, it is at hand; elsewhere the user hands it in.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plan.algebra import Annotation
    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class Known:
    """A pipeline, what its rows carry, and the version of the query that it is."""

    node: Node
    annotation: Annotation
    version: str


MOST = 1_000
"""How many are kept; those that were used longest ago are handed in or rebuilt from the store."""

_lock = threading.Lock()
_known: dict[tuple[str, str], dict[str, Known]] = {}


def remember(root: Path, stream: str, known: Known) -> None:
    """Note the pipeline that fills a stream from now on; those that did before stay known."""
    with _lock:
        versions = _known.pop((str(root), stream), {})
        versions.pop(known.version, None)
        versions[known.version] = known
        _known[str(root), stream] = versions
        while sum(map(len, _known.values())) > MOST:
            oldest = next(iter(_known))
            del _known[oldest][next(iter(_known[oldest]))]
            if not _known[oldest]:
                del _known[oldest]


def recall(root: Path, stream: str, version: str | None = None) -> Known | None:
    """Return a pipeline that fills a stream, if it was written in this process.

    Args:
        root: The store.
        stream: The stream.
        version: Which version of the query; the newest if left out.
    """
    with _lock:
        versions = _known.pop((str(root), stream), None)
        if versions is None:
            return None
        _known[str(root), stream] = versions
        if version is None:
            return next(reversed(versions.values()), None)
        return versions.get(version)
