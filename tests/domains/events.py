"""Streams of provenance events of any size, in order, as the job that counts hashtags has them.

Nothing is computed line by line in Python: numpy draws the hashtags of all lines, with the
frequencies that they have in the real text, and DuckDB writes the JSON. Each text ends with a line
break, so what Arrow holds of a column of texts is what the file holds, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clew.store.spill import database
from hashtags import COUNT, hashtags, tweets

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

_FILE_LINES = 1_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """What a stream holds.

    Attributes:
        lines: How many lines of JSON.
        size: How many bytes.
        edges: How many statements: everything used, and everything generated.
        reduced: How many edges there are between inputs and outputs.
    """

    lines: int
    size: int
    edges: int
    reduced: int


def write_events(
    folder: Path,
    number: int,
    *,
    per_line: float = 3,
    between: int = 0,
    nodes: int = 5,
    grouped: bool = True,
    seed: int = 0,
    end: bool = True,
) -> Written:
    """Write the events of counting the hashtags of many lines, in the order of the work.

    Args:
        folder: A new folder for files with lines of JSON.
        number: How many lines of text.
        per_line: How many hashtags a line has, on average.
        between: How many functions each pair passes, one by one, between map and reduce.
        nodes: How many machines there are.
        grouped: One line for each execution; else one for each statement.
        seed: The same seed gives the same stream.
        end: Say at the end that the job has ended.
    """
    connection = database()
    connection.register("drawn", _draw(number, per_line, seed))
    _prepare(connection, between, nodes)
    [[edges, reduced]] = connection.sql(
        "SELECT (SELECT sum(len(used) + len(generated)) FROM executions), "
        "(SELECT count(*) FROM (SELECT DISTINCT line, tag FROM drawn))"
    ).fetchall()
    said = connection.sql(_grouped() if grouped else _statements())
    lines, size = _write(said, folder)
    if end:
        text = f'{{"prov": "end", "job": "{COUNT}", "seq": {lines}}}\n'
        (folder / f"{COUNT}-end.jsonl").write_text(text)
        lines, size = lines + 1, size + len(text)
    return Written(lines, size, int(edges or 0), int(reduced))


def _draw(number: int, per_line: float, seed: int) -> pa.Table:
    """Draw hashtags for lines: columns `line`, `place` in the line, and `tag`."""
    known = Counter(tag for line in tweets() for tag in hashtags(line))
    chance = np.random.default_rng(seed)
    many = chance.poisson(per_line, number)
    weights = np.array(list(known.values()), float)
    tags = chance.choice(len(known), int(many.sum()), p=weights / weights.sum())
    line = np.repeat(np.arange(number), many)
    place = np.arange(len(line)) - np.repeat(np.cumsum(many) - many, many)
    names = pa.array(list(known)).take(pa.array(tags))
    return pa.table({"line": line, "place": place, "tag": names})


def _prepare(connection: duckdb.DuckDBPyConnection, between: int, nodes: int) -> None:
    """Make a table of executions, each with what it used and generated, in the order of work."""
    pair = f"'{COUNT}:pair/' || line || '-' || place"
    # A pair that passes a function is a new one; `/0` is what map made of it.
    steps = "".join(
        f"""
        UNION ALL SELECT {step + 1} AS stage, 'step-{step + 1}' AS function,
            line || '-' || place AS key, line % {nodes} AS node, line AS rank,
            [{pair} || '/{step}'] AS used, [{pair} || '/{step + 1}'] AS generated FROM drawn"""
        for step in range(between)
    )
    connection.execute(
        f"""
        CREATE TEMP TABLE executions AS
        SELECT 0 AS stage, 'map' AS function, CAST(line AS VARCHAR) AS key, line % {nodes} AS node,
            line AS rank, ['tweet/' || line] AS used,
            list({pair} || '/0' ORDER BY place) AS generated FROM drawn GROUP BY line
        {steps}
        UNION ALL SELECT {between + 1}, 'reduce', tag, min(line) % {nodes}, min(line),
            list({pair} || '/{between}' ORDER BY line, place), ['tag/' || tag] FROM drawn
        GROUP BY tag
        """
    )


def _common(seq: str) -> str:
    """Write what all events have, from the columns of an execution, as SQL."""
    activity = f"'{COUNT}:' || function || '/' || key"
    time = (
        "strftime(make_timestamp(1767225600000000 + (row_number() OVER ordered - 1) * 1000), "
        "'%Y-%m-%dT%H:%M:%S.%g') || 'Z'"
    )
    return (
        f"""'"activity": "' || {activity} || '", "job": "{COUNT}", "function": "' || function """
        f"""|| '", "node": "worker-' || node || '", "partition": ' || node || ', "time": "' || """
        f"""{time} || '", "group": "' || {activity} || '", "seq": ' || {seq} || '}}' || chr(10)"""
    )


def _grouped() -> str:
    ends = """'"used": ["' || array_to_string(used, '", "') || '"], "generated": ["' ||
        array_to_string(generated, '", "') || '"], '"""
    return f"""SELECT '{{"prov": "group", ' || {ends} || {_common("row_number() OVER ordered - 1")}
        AS said FROM executions
        WINDOW ordered AS (ORDER BY stage, rank, key) ORDER BY stage, rank, key"""


def _statements() -> str:
    return f"""
        WITH statements AS (
            SELECT *, 'used' AS prov, 0 AS side, unnest(used) AS entity,
                generate_subscripts(used, 1) AS nth FROM executions
            UNION ALL SELECT *, 'wasGeneratedBy', 1, unnest(generated),
                generate_subscripts(generated, 1) FROM executions)
        SELECT '{{"prov": "' || prov || '", "entity": "' || entity || '", ' ||
            {_common("row_number() OVER ordered - 1")} AS said FROM statements
        WINDOW ordered AS (ORDER BY stage, rank, key, side, nth)
        ORDER BY stage, rank, key, side, nth"""


def _write(said: duckdb.DuckDBPyRelation, folder: Path) -> tuple[int, int]:
    folder.mkdir(parents=True)
    lines = size = 0
    for number, batch in enumerate(said.to_arrow_reader(_FILE_LINES)):
        column = batch.column(0)
        _, offsets, data = column.buffers()
        kind = np.int64 if pa.types.is_large_string(column.type) else np.int32
        ends = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
        with (folder / f"{COUNT}-{number:06d}.jsonl").open("wb") as file:
            file.write(memoryview(data)[ends[0] : ends[-1]])
        lines, size = lines + len(column), size + int(ends[-1] - ends[0])
    return lines, size
