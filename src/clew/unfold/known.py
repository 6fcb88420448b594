"""The pipelines of this process, by the store and stream that they fill.

A store knows what a query was, in words; to compute something again, the query itself is needed.
Where the query was written in this process, it is at hand; elsewhere the user hands it in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.capture.algebra import Annotation
    from clew.graph.node import Node


@dataclass(frozen=True, slots=True)
class Known:
    """A pipeline, and what its rows carry."""

    node: Node
    annotation: Annotation


_known: dict[tuple[str, str], Known] = {}


def remember(root: Path, stream: str, known: Known) -> None:
    """Note the pipeline that fills a stream."""
    _known[str(root), stream] = known


def recall(root: Path, stream: str) -> Known | None:
    """Return the pipeline that fills a stream, if it was written in this process."""
    return _known.get((str(root), stream))
