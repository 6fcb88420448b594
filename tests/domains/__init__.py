"""More workloads, for tests, proofs and benchmarks alone: what users install has only the demo's.

Each module holds one domain in the form of `clew.workloads.linear_road`: a seeded generator (or,
for flights, a loader of real data), queries on any frame, and the answers they must give, found in
plain Python from the rows alone.

| module | query | source rows per result |
|---|---|---|
| `smart_grid` | `blackouts` | 24 for each dark meter, so 192 for eight |
| `smart_grid` | `anomalies` | 25: a day and the midnight after it |
| `vehicle_tracking` | `speeding` | about 34: the positions of two minutes |
| `vehicle_tracking` | `visits` | 10 to 260: the positions in the area |
| `object_annotation` | `bicycles_ahead` | 12 to 60: the frames with the bicycle |
| `object_annotation` | `crossings` | 2 |
| `flights` | `delayed_departures`, with and without weather | as many flights as were late |
| `flights` | `late_flights` | the flight, and its plane where one is known |

With those of Linear Road, the first two are the queries of GeneaLog's evaluation, the next four
those that Ananke's adds. `events` writes streams of provenance events of any size, made by the jobs
of `examples/hashtags`, and `disorder` puts such streams out of order.
"""
