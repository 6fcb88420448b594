"""Workloads: data, queries and the answers they must give.

Each module holds one domain: a seeded generator (or, for flights, a loader of real data), the
queries, written on any frame with the DataFrame's verbs, and for each query an `expected_...`
function that finds the results and the source rows behind each one in plain Python, from the
rows alone. The demo, the tests and the benchmarks all start here.

| module | query | source rows per result |
|---|---|---|
| `linear_road` | `stopped_cars` | 4 |
| `linear_road` | `accidents` | 4 for each car, so 8 for two |
| `smart_grid` | `blackouts` | 24 for each dark meter, so 192 for eight |
| `smart_grid` | `anomalies` | 25: a day and the midnight after it |
| `vehicle_tracking` | `speeding` | about 34: the positions of two minutes |
| `vehicle_tracking` | `visits` | 10 to 260: the positions in the area |
| `object_annotation` | `bicycles_ahead` | 12 to 60: the frames with the bicycle |
| `object_annotation` | `crossings` | 2 |
| `flights` | `delayed_departures`, with and without weather | as many flights as were late |
| `flights` | `late_flights` | the flight, and its plane where one is known |
| `hashtags` | `count_hashtags`, `sum_by_category`, jobs that publish events | the lines with it |

The first four are the queries of GeneaLog's evaluation, the next four those that Ananke's adds.
`flights` needs the extra of that name. `events` writes streams of provenance events of any size,
and `disorder` puts such streams out of order.
"""

from __future__ import annotations

from clew.workloads import (
    flights,
    linear_road,
    object_annotation,
    smart_grid,
    vehicle_tracking,
)
from clew.workloads.expected import Expected
from clew.workloads.files import Part, write_files
from clew.workloads.verbs import Frame, FrameT

__all__ = [
    "Expected",
    "Frame",
    "FrameT",
    "Part",
    "flights",
    "linear_road",
    "object_annotation",
    "smart_grid",
    "vehicle_tracking",
    "write_files",
]
