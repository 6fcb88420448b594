"""Linear Road, the workload of the demo: data, queries and the answers they must give.

`linear_road` holds a seeded generator, the queries, written on any frame with the DataFrame's
verbs, and for each query an `expected_...` function that finds the results and the source rows
behind each one in plain Python, from the rows alone.

| module | query | source rows per result |
|---|---|---|
| `linear_road` | `stopped_cars` | 4 |
| `linear_road` | `accidents` | 4 for each car, so 8 for two |
"""

from __future__ import annotations

from clew.workloads import linear_road
from clew.workloads.expected import Expected
from clew.workloads.files import Part, write_files
from clew.workloads.verbs import Frame, FrameT

__all__ = ["Expected", "Frame", "FrameT", "Part", "linear_road", "write_files"]
