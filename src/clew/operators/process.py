"""Run a machine inside Spark: over a stream with state, or over the groups of a table.

Both are given the same columns and make the same, so that a stream can be computed again as a
table. On a stream a row waits until the watermark has passed it; only then is it certain that no
row comes before it any more, and the machine takes all such rows in order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from clew.operators.machines import Due, Machine, Member, State, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

# Spark gives rows to Python as named tuples, whose names may not begin with an underscore.
KEY = "clew_key"
MICROS = "clew_micros"
ROW = "clew_row"
NOTE = "clew_note"
LANE = "clew_lane"
VALUE = "clew_value"

AT = "_clew_at"
TIMES = "_clew_times"
ROWS = "_clew_rows"
NOTES = "_clew_notes"
LANES = "_clew_lanes"

_MADE = T.StructType(
    [
        T.StructField(AT, T.TimestampType()),
        T.StructField(TIMES, T.ArrayType(T.LongType())),
        T.StructField(ROWS, T.ArrayType(T.StringType())),
        T.StructField(NOTES, T.ArrayType(T.StringType())),
        T.StructField(LANES, T.ArrayType(T.IntegerType())),
    ]
)
_WAITING = f"{MICROS} long, {ROW} string, {NOTE} string, {LANE} int, {VALUE} string"


def given_value(value: Column) -> Column:
    """Write the value that a machine looks at as text; a null has no text behind the mark."""
    return F.coalesce(F.concat(F.lit("="), value.cast("string")), F.lit(""))


def over_stream(rows: DataFrame, machine: Machine) -> DataFrame:
    """Run a machine over each key of a stream."""
    return rows.groupBy(KEY).transformWithStateInPandas(
        _Process(machine), _MADE, "Append", "EventTime", eventTimeColumnName=AT
    )


def over_table(rows: DataFrame, machine: Machine) -> DataFrame:
    """Run a machine over each key of a table."""

    def run(group: pd.DataFrame) -> pd.DataFrame:
        return _frame(machine.take({}, in_order(_members(group)), None))

    return rows.groupBy(KEY).applyInPandas(run, _MADE)


class _Process(StatefulProcessor):
    """A machine with its state in Spark's store: rows that wait, and what it remembers."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._waiting = handle.getListState("waiting", _WAITING)
        self._memory = handle.getValueState("memory", "state string")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        came = [member for each in rows for member in _members(each)]
        if came:
            self._waiting.appendList([tuple(member) for member in came])
            self._wake(min(member.time for member in came))
        return iter(())

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        until = timerValues.getCurrentWatermarkInMs() * 1000
        waiting = [Member(*each) for each in self._waiting.get()]
        state = self._remembered()
        ready = in_order(m for m in waiting if m.time <= until)
        due = self._machine.next_due(state)
        if not ready and (due is None or due > until):
            return  # another timer of this batch has done it
        made = _frame(self._machine.take(state, ready, until))
        later = [m for m in waiting if m.time > until]
        self._waiting.clear()
        if later:
            self._waiting.put([tuple(m) for m in later])
        if self._machine.is_over(state):
            self._memory.clear()
        else:
            self._memory.update((json.dumps(state),))
        moments = [*[m.time for m in later], self._machine.next_due(state)]
        known = [moment for moment in moments if moment is not None]
        if known:
            self._wake(min(known))
        yield made

    def close(self) -> None:
        pass

    def _remembered(self) -> State:
        held = self._memory.get()
        return json.loads(held[0]) if held else {}

    def _wake(self, micros: int) -> None:
        # Timers are in milliseconds: one that is set too early would find the row not yet due.
        self._handle.registerTimer(-(-micros // 1000))


def _members(group: pd.DataFrame) -> Iterator[Member]:
    columns = (group[name] for name in (MICROS, ROW, NOTE, LANE, VALUE))
    for micros, row, note, lane, value in zip(*columns, strict=True):
        # See `given_value`.
        yield Member(int(micros), row, note, int(lane), value[1:] if value else None)


def _frame(found: Iterable[Due]) -> pd.DataFrame:
    due = list(found)
    moments = np.array([each.at for each in due], dtype="int64").astype("datetime64[us]")
    return pd.DataFrame(
        {
            AT: pd.Series(moments).dt.tz_localize("UTC"),
            TIMES: _lists([m.time for m in each.members] for each in due),
            ROWS: _lists([m.row for m in each.members] for each in due),
            NOTES: _lists([m.note for m in each.members] for each in due),
            LANES: _lists([m.lane for m in each.members] for each in due),
        }
    )


def _lists(lists: Iterable[list[Any]]) -> pd.Series[Any]:
    # Of no lists at all, pandas would think that they are numbers.
    return pd.Series(list(lists), dtype=object)
