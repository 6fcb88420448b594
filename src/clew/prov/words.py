"""The words of PROV that matter here, and the tables that statements become.

An *element* says that each of its outputs was derived from each of its inputs. A statement is one
element, and so is all that one function execution did, if it comes at once: then its activity is
gone before it was ever a vertex. Activities and entities may bear the same name, so an activity
begins with a character that no entity may begin with.
"""

from __future__ import annotations

import pyarrow as pa

ACTIVITY = "\x01"
"""What the name of an activity begins with among vertices."""

EDGE_RELATIONS = ("used", "wasGeneratedBy", "wasDerivedFrom", "hadMember")
"""The relations that a path between two entities may consist of."""

OTHER_RELATIONS = (
    "wasInformedBy",
    "wasStartedBy",
    "wasEndedBy",
    "wasInvalidatedBy",
    "wasAttributedTo",
    "wasAssociatedWith",
    "actedOnBehalfOf",
    "wasInfluencedBy",
    "specializationOf",
    "alternateOf",
    "mentionOf",
    "hadDictionaryMember",
    "derivedByInsertionFrom",
    "derivedByRemovalFrom",
)
"""Relations of PROV that are left out, as the attributes of things are."""

THINGS = ("entity", "activity", "agent")

GROUP = "group"
END = "end"

ELEMENTS = pa.schema(
    [
        ("outputs", pa.list_(pa.string())),
        ("inputs", pa.list_(pa.string())),
        ("activity", pa.string()),  # of a whole function execution; null for a single statement
        ("time", pa.int64()),  # microseconds; null if the statement has none
        ("execution", pa.string()),  # what may not be split: the function execution
        ("function", pa.string()),
        ("node", pa.string()),
    ]
)
"""What statements are parsed into."""

EDGES = pa.schema(
    [
        ("output", pa.string()),
        ("input", pa.string()),
        ("output_time", pa.int64()),  # when the output was last named
        ("input_time", pa.int64()),  # when the input was last named
        ("input_first", pa.int64()),  # when it was first named as an input
        ("whole", pa.int8()),  # 1: all there is on the output's making, 2: on the input's use
        ("helper", pa.bool_()),  # may only help to find other edges
    ]
)
"""Edges that are not final yet."""

FINAL = pa.schema([("output", pa.string()), ("input", pa.string())])
"""Edges for good: `output` was derived from `input`."""

LETTERS = pa.schema([("line", pa.string()), ("reason", pa.string())])
"""What could not be read, and why; or what was left out, and which relation it is."""

NO_TIME = -(2**62)
"""The time of what has none, before any other."""
