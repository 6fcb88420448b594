"""clew: row-level provenance for Apache Spark.

Wrap a source with `trace`, write the DataFrame verbs you know, name a place for provenance, and
ask which source rows made a result row (`backward`) or which results a source row went into
(`forward`). Jobs of any kind publish what they do with `emit`, and `repository` keeps it reduced.
Asking needs no Spark, so what does is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew import emit, repository
from clew.exceptions import ClewError
from clew.model import Edge, RowId
from clew.query.provenance import Provenance
from clew.query.provenance import open_store as open
from clew.query.trace import Trace
from clew.version import __version__

if TYPE_CHECKING:
    from clew.frame.frame import TracedFrame
    from clew.frame.trace import trace
    from clew.reduce.stream import Reduction, reduce
    from clew.reduce.table import reduce_table

__all__ = [
    "ClewError",
    "Edge",
    "Provenance",
    "Reduction",
    "RowId",
    "Trace",
    "TracedFrame",
    "__version__",
    "emit",
    "open",
    "reduce",
    "reduce_table",
    "repository",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name == "trace":
        from clew.frame.trace import trace

        return trace
    if name == "TracedFrame":
        from clew.frame.frame import TracedFrame

        return TracedFrame
    if name == "reduce":
        import importlib

        return importlib.import_module("clew.reduce")
    if name == "Reduction":
        from clew.reduce.stream import Reduction

        return Reduction
    if name == "reduce_table":
        from clew.reduce.table import reduce_table

        return reduce_table
    msg = f"module `clew` has no name `{name}`"
    raise AttributeError(msg)
