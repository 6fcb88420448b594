"""The pipelines of this process, by the store and stream that they fill.

A store knows what a query was, in words; to compute something again, the query itself is needed.
Where the query was written in this process, it is at hand; elsewhere the user hands it in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.graph.node import Node

_known: dict[tuple[str, str], Node] = {}


def remember(root: Path, stream: str, node: Node) -> None:
    """Note the pipeline that fills a stream."""
    _known[str(root), stream] = node


def recall(root: Path, stream: str) -> Node | None:
    """Return the pipeline that fills a stream, if it was written in this process."""
    return _known.get((str(root), stream))
