"""clew: row-level provenance for Apache Spark.

Wrap a source with `trace`, write the DataFrame verbs you know, name a place for provenance, and
ask which source rows made a result row (`backward`) or which results a source row went into
(`forward`).
"""

from __future__ import annotations

from clew.exceptions import ClewError
from clew.frame.frame import TracedFrame
from clew.frame.trace import trace
from clew.model import Edge, RowId
from clew.query.provenance import Provenance
from clew.query.provenance import open_store as open
from clew.query.trace import Trace
from clew.version import __version__

__all__ = [
    "ClewError",
    "Edge",
    "Provenance",
    "RowId",
    "Trace",
    "TracedFrame",
    "__version__",
    "open",
    "trace",
]
