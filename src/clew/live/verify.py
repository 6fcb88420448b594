"""Check that the elements of a live graph keep what a live graph promises.

The promises are the requirements R-V, R-E and R-L of Ananke (Palyvos-Giannas and others, VLDB
2021): each vertex, edge and label is delivered once, an edge never before its vertices, a label
never before an edge. A graph may have more elements than fit in memory, so DuckDB folds them into
one line for each vertex and one for each edge, and every check is a condition on such a line. No
code is shared with what makes a graph: a mistake made there is not made here again. Start at
`verify`; `CHECKS` is the list of what it looks for.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import duckdb
import pyarrow as pa

from clew.exceptions import StoreError
from clew.live.elements import SCHEMA
from clew.store.engine import as_pattern
from clew.store.spill import database

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Requirement = Literal["stream", "R-V", "R-E", "R-L"]
"""Which promise is broken; `stream` is about elements that cannot be read as any."""

_MEMORY = "1GB"
_PART = 4_000_000  # elements that are folded at a time, well within that memory
_EXAMPLES = 3


class Check(NamedTuple):
    """One thing that must not be: lines of a table that meet a condition."""

    requirement: Requirement
    what: str
    table: str
    condition: str


CHECKS = (
    Check(
        "stream",
        "an element is neither a vertex, an edge nor a label",
        "malformed",
        "element NOT IN ('vertex', 'edge', 'label')",
    ),
    Check(
        "stream",
        "a vertex or label is neither of a source row nor of a sink row",
        "malformed",
        "element IN ('vertex', 'label') AND side NOT IN ('source', 'sink')",
    ),
    *(
        Check("stream", f"an element has no `{column}`", "malformed", f"{column} IS NULL")
        for column in ("element", "step", "stream", "a", "b")
    ),
    Check("stream", "an element has no `at`", "malformed", "clock IS NULL"),
    Check(
        "stream",
        "a vertex or label has no `side`",
        "malformed",
        "element IN ('vertex', 'label') AND side IS NULL",
    ),
    *(
        Check(
            "stream",
            f"an edge has no `{column}`",
            "malformed",
            f"element = 'edge' AND {column} IS NULL",
        )
        for column in ("sink", "sink_a", "sink_b")
    ),
    Check("stream", "`at` goes back from a step to a later one", "steps", "newest < before"),
    Check("R-V", "a vertex was delivered more than once", "vertices", "deliveries > 1"),
    Check("R-V", "the source vertex of an edge was not delivered", "edges", "source_clock IS NULL"),
    Check("R-V", "the sink vertex of an edge was not delivered", "edges", "sink_clock IS NULL"),
    Check(
        "R-V",
        "a source vertex has no edge",
        "vertices",
        "side = 'source' AND deliveries > 0 AND edges = 0",
    ),
    Check("R-E", "an edge was delivered more than once", "edges", "deliveries > 1"),
    Check(
        "R-E",
        "the `at` of an edge is before that of one of its vertices",
        "edges",
        "clock < source_clock OR clock < sink_clock",
    ),
    Check(
        "R-E",
        "an edge was delivered in an earlier step than one of its vertices",
        "edges",
        "step < source_step OR step < sink_step",
    ),
    Check("R-L", "a label was delivered more than once", "vertices", "labels > 1"),
    Check(
        "R-L",
        "a label is for a vertex that was not delivered",
        "vertices",
        "labels > 0 AND deliveries = 0",
    ),
    Check(
        "R-L",
        "the `at` of a label is before that of its vertex",
        "vertices",
        "label_clock < clock",
    ),
    Check(
        "R-L",
        "a label was delivered in an earlier step than its vertex",
        "vertices",
        "label_step < step",
    ),
    Check(
        "R-L",
        "the `at` of a label is before that of an edge of its vertex",
        "vertices",
        "label_clock < edge_clock",
    ),
    Check(
        "R-L",
        "a vertex got an edge after it was labelled as expired",
        "vertices",
        "label_step < edge_step",
    ),
)
"""What is looked for in every stream of elements."""

CHECKS_WHEN_COMPLETE = (
    Check("R-L", "a vertex has no label", "vertices", "deliveries > 0 AND labels = 0"),
)
"""What is looked for besides when nothing more is to come."""

# What an element of each table is called in an example.
_NAMES = {
    "malformed": (
        "min(CASE WHEN element = 'edge' THEN edge_id(stream, a, b, sink, sink_a, sink_b)"
        f" ELSE row_id(stream, a, b) END, {_EXAMPLES})"
    ),
    "steps": f"arg_min('step ' || step, step, {_EXAMPLES})",
    "vertices": f"min(row_id(stream, a, b), {_EXAMPLES})",
    "edges": f"min(edge_id(stream, a, b, sink, sink_a, sink_b), {_EXAMPLES})",
}

_TYPES = {
    "element": "VARCHAR",
    "at": "TIMESTAMPTZ",
    "step": "BIGINT",
    "side": "VARCHAR",
    "stream": "VARCHAR",
    "a": "BIGINT",
    "b": "BIGINT",
    "sink": "VARCHAR",
    "sink_a": "BIGINT",
    "sink_b": "BIGINT",
}
"""The columns that are looked at, and DuckDB's types for them."""

# `at` is a word of SQL, hence `clock`.
_PREPARE = """
    CREATE MACRO half(number) AS coalesce(lpad(lower(hex(number)), 16, '0'), repeat('?', 16));
    CREATE MACRO row_id(stream, a, b) AS coalesce(stream, '?') || ':' || half(a) || half(b);
    CREATE MACRO edge_id(stream, a, b, sink, sink_a, sink_b) AS
        row_id(stream, a, b) || ' -> ' || row_id(sink, sink_a, sink_b);

    CREATE VIEW judged AS
    SELECT * RENAME ("at" AS clock), coalesce(
        element IN ('vertex', 'edge', 'label')
        AND clock IS NOT NULL AND step IS NOT NULL
        AND stream IS NOT NULL AND a IS NOT NULL AND b IS NOT NULL
        AND CASE WHEN element = 'edge'
            THEN sink IS NOT NULL AND sink_a IS NOT NULL AND sink_b IS NOT NULL
            ELSE side IN ('source', 'sink')
        END,
        false
    ) AS sound
    FROM elements;

    CREATE VIEW known AS FROM judged WHERE sound;
    CREATE TABLE malformed AS FROM judged WHERE NOT sound;

    CREATE TABLE steps AS
    SELECT step, newest, max(newest) OVER (
        ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before
    FROM (SELECT step, max(clock) AS newest FROM known GROUP BY step);

    CREATE VIEW ends AS
    SELECT element, clock, step, side, stream, a, b FROM known WHERE element <> 'edge'
    UNION ALL
    SELECT element, clock, step, 'source', stream, a, b FROM known WHERE element = 'edge'
    UNION ALL
    SELECT element, clock, step, 'sink', sink, sink_a, sink_b FROM known WHERE element = 'edge';
"""

# A vertex and a label count from their first delivery; of an edge, every delivery counts.
_VERTICES = """
    SELECT
        side, stream, a, b,
        count(*) FILTER (element = 'vertex') AS deliveries,
        min(clock) FILTER (element = 'vertex') AS clock,
        min(step) FILTER (element = 'vertex') AS step,
        count(*) FILTER (element = 'label') AS labels,
        min(clock) FILTER (element = 'label') AS label_clock,
        min(step) FILTER (element = 'label') AS label_step,
        count(*) FILTER (element = 'edge') AS edges,
        max(clock) FILTER (element = 'edge') AS edge_clock,
        max(step) FILTER (element = 'edge') AS edge_step
    FROM ends
    WHERE hash(stream, a, b) % $parts = $part
    GROUP BY side, stream, a, b
"""

_EDGES = """
    SELECT
        edge.*,
        source_end.clock AS source_clock, source_end.step AS source_step,
        sink_end.clock AS sink_clock, sink_end.step AS sink_step
    FROM (
        SELECT
            stream, a, b, sink, sink_a, sink_b,
            count(*) AS deliveries, min(clock) AS clock, min(step) AS step
        FROM known
        WHERE element = 'edge' AND hash(stream, a, b) % $parts = $part
        GROUP BY stream, a, b, sink, sink_a, sink_b
    ) AS edge
    JOIN vertices AS source_end ON source_end.side = 'source'
        AND source_end.stream = edge.stream AND source_end.a = edge.a AND source_end.b = edge.b
    JOIN vertices AS sink_end ON sink_end.side = 'sink'
        AND sink_end.stream = edge.sink
        AND sink_end.a = edge.sink_a AND sink_end.b = edge.sink_b
"""


@dataclass(frozen=True, slots=True)
class Violation:
    """One kind of broken promise, and where it was found.

    Attributes:
        requirement: `R-V` of vertices, `R-E` of edges, `R-L` of labels; `stream` where elements
            cannot be told apart or put in order.
        what: What must not be, in one sentence.
        count: How many vertices, edges, steps or malformed elements it was found for.
        examples: The least of them, up to three, as `reports:` and 32 hexadecimal digits. An edge
            shows its source and its sink, a step its number, and a number that is null shows `?`.
    """

    requirement: Requirement
    what: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        such = ", such as " if self.count > len(self.examples) else ": "
        shown = ", ".join(map(_printable, self.examples))
        return f"{self.requirement}: {self.what}; {self.count:,} found{such}{shown}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was checked, and every promise that is broken.

    Attributes:
        vertices: How many vertices were delivered, with those that came again.
        edges: As above, edges.
        labels: As above, labels.
        violations: One for each kind found, in the order of `CHECKS`.
    """

    vertices: int
    edges: int
    labels: int
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether all promises are kept."""
        return not self.violations

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold."""
        return {
            "ok": self.ok,
            "vertices": self.vertices,
            "edges": self.edges,
            "labels": self.labels,
            "violations": [
                {**asdict(each), "examples": list(each.examples)} for each in self.violations
            ],
        }

    def __str__(self) -> str:
        parts = (
            _count(self.vertices, "vertex", "vertices"),
            _count(self.edges, "edge", "edges"),
            _count(self.labels, "label", "labels"),
        )
        found = _count(len(self.violations), "violation", "violations")
        return "\n".join((f"{', '.join(parts)}: {found}", *map(str, self.violations)))


def verify(elements: pa.Table | Sequence[Path], *, complete: bool = False) -> Report:
    """Check the elements of a live graph.

    A vertex is named by its side and its row, so a row that one query writes and another reads may
    be a vertex on both sides. A malformed element is reported and takes no part in other checks.

    Args:
        elements: A table with the columns of `clew.live.elements.SCHEMA`, or Parquet files.
        complete: Nothing more is to come, so every vertex needs its label.

    Returns:
        How many elements there are, and what is wrong with them.

    Raises:
        StoreError: A file is gone or damaged, or a column is missing.

    Examples:
        >>> import datetime as dt
        >>> noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
        >>> alert = {"side": "sink", "stream": "alerts", "a": 255, "b": -1}
        >>> rows = [{"element": "vertex", "at": noon, "step": 0, **alert}]
        >>> print(verify(pa.Table.from_pylist(rows, SCHEMA)))
        1 vertex, 0 edges, 0 labels: 0 violations
        >>> print(verify(pa.Table.from_pylist(rows, SCHEMA), complete=True))
        1 vertex, 0 edges, 0 labels: 1 violation
        R-L: a vertex has no label; 1 found: alerts:00000000000000ffffffffffffffffff
    """
    checks = CHECKS + CHECKS_WHEN_COMPLETE if complete else CHECKS
    with _connect() as connection:
        try:
            _name_elements(connection, elements)
            connection.execute(_PREPARE)
            counts = _count_elements(connection)
            _fold(connection, parts=1 + sum(counts) // _PART)
            violations = tuple(_find(connection, checks))
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise _unreadable(str(error).strip().splitlines()[0]) from error
    return Report(*counts, violations)


@contextmanager
def _connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB that writes to disk what does not fit in its share of memory."""
    with database() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET memory_limit = $memory", {"memory": _MEMORY})
        yield connection


def _name_elements(
    connection: duckdb.DuckDBPyConnection, elements: pa.Table | Sequence[Path]
) -> None:
    """Make the view `elements`, with every column of the type it should have."""
    if not isinstance(elements, pa.Table) and not elements:
        elements = SCHEMA.empty_table()
    if isinstance(elements, pa.Table):
        connection.register("given", elements)
        given = connection.table("given")
    else:
        paths = [as_pattern(str(each)) for each in elements]
        given = connection.read_parquet(paths, hive_partitioning=False)
    missing = [f"`{name}`" for name in _TYPES if name not in given.columns]
    if missing:
        why = f"there is no column {', '.join(missing)}"
        raise _unreadable(why)
    typed = (f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in _TYPES.items())
    given.project(", ".join(typed)).create_view("elements")


def _fold(connection: duckdb.DuckDBPyConnection, parts: int) -> None:
    """Make the tables `vertices` and `edges` part by part, so that each part fits in memory."""
    for table, sql in (("vertices", _VERTICES), ("edges", _EDGES)):
        for part in range(parts):
            lines = connection.sql(sql, params={"parts": parts, "part": part})
            if part == 0:
                lines.create(table)
            else:
                lines.insert_into(table)


def _find(connection: duckdb.DuckDBPyConnection, checks: Sequence[Check]) -> Iterator[Violation]:
    """Count with one look at each table, then look again only for what was found."""
    counts: dict[Check, int] = {}
    for table in _NAMES:
        own = [each for each in checks if each.table == table]
        numbers = ", ".join(f"count(*) FILTER ({each.condition})" for each in own)
        [found] = connection.table(table).aggregate(numbers).fetchall()
        counts.update(zip(own, found, strict=True))
    for check in checks:
        if counts[check]:
            broken = connection.table(check.table).filter(check.condition)
            [(examples,)] = broken.aggregate(_NAMES[check.table]).fetchall()
            yield Violation(check.requirement, check.what, counts[check], tuple(examples))


def _count_elements(connection: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    [(vertices, edges, labels)] = connection.execute(
        "SELECT count(*) FILTER (element = 'vertex'), count(*) FILTER (element = 'edge'),"
        " count(*) FILTER (element = 'label') FROM elements"
    ).fetchall()
    return vertices, edges, labels


def _unreadable(why: str) -> StoreError:
    return StoreError(
        f"the elements of a live graph cannot be read: {why}\n\n"
        "Give an Arrow table with the columns of `clew.live.elements.SCHEMA`, or the Parquet files "
        "of one graph; if one of these is damaged, restore it from a backup."
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _printable(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
