"""clew: row-level provenance for Apache Spark.

Wrap a source with `trace`, write the DataFrame verbs you know, name a place for provenance, and
ask which source rows made a result row (`backward`) or which results a source row went into
(`forward`). Jobs of any kind publish what they do with `emit`, and `repository` keeps it reduced.
Asking needs no Spark, and printing help needs nothing, so all else is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.exceptions import ClewError
from clew.version import __version__

if TYPE_CHECKING:
    from clew import emit, repository
    from clew.frame.frame import TracedFrame
    from clew.frame.trace import trace
    from clew.model import Edge, RowId
    from clew.query.provenance import Provenance
    from clew.query.provenance import open_store as open
    from clew.query.trace import Trace
    from clew.reduce.stream import Reduction, reduce
    from clew.reduce.table import reduce_table

__all__ = [
    "ClewError",
    "Edge",
    "Limits",
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


_FROM = {
    "Edge": ("clew.model", "Edge"),
    "Limits": ("clew.limits", "Limits"),
    "Provenance": ("clew.query.provenance", "Provenance"),
    "Reduction": ("clew.reduce.stream", "Reduction"),
    "RowId": ("clew.model", "RowId"),
    "Trace": ("clew.query.trace", "Trace"),
    "TracedFrame": ("clew.frame.frame", "TracedFrame"),
    "open": ("clew.query.provenance", "open_store"),
    "reduce_table": ("clew.reduce.table", "reduce_table"),
    "trace": ("clew.frame.trace", "trace"),
}
_MODULES = ("doctor", "emit", "export", "reduce", "repository", "testing")


def __getattr__(name: str) -> Any:
    if name in _FROM:
        module, there = _FROM[name]
        return getattr(import_module(module), there)
    if name in _MODULES:
        return import_module(f"clew.{name}")
    msg = f"module `clew` has no name `{name}`"
    raise AttributeError(msg)
