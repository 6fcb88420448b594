"""Ask stores in a process that has never seen their pipelines.

Run as `python elsewhere.py`; it reads `[[path, stream], ...]` from standard input and prints, for
each store, how many results came out as before and the differences: from the trace of all results,
and from the sources. Spark is started by the questions themselves.
"""

from __future__ import annotations

import json
import sys

import clew
from clew.exceptions import ReplayError


def asked(path: str, stream: str) -> dict[str, object]:
    prov = clew.open(path)
    rows = prov.rows(stream, limit=None)
    trace = prov.backward(stream, list(rows))
    again = prov.replay(trace)
    found: dict[str, object] = {
        "rows": len(rows),
        "sources": sorted(each.id.text for each in trace.rows),
        "trace": [again.unchanged, [str(each) for each in again.differences]],
    }
    try:
        whole = prov.replay(stream)
        found["whole"] = [whole.unchanged, [str(each) for each in whole.differences]]
    except ReplayError as error:
        found["whole"] = str(error)
    return found


if __name__ == "__main__":
    print(json.dumps([asked(*each) for each in json.load(sys.stdin)]))
