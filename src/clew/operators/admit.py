"""What a step that keeps state takes in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from clew.plan.columns import quote

if TYPE_CHECKING:
    from clew.plan.algebra import Capture
    from clew.plan.node import Annotated


def admitted(frame: Annotated, time: str | None, capture: Capture) -> Annotated:
    """Leave out the rows that such a step would drop as late, by one of their columns if any."""
    admission = capture.admit(frame.annotation, _moment(frame, time) if time else None)
    df = admission.apply(frame.df, frame.annotation.columns)
    return replace(frame, df=df, annotation=admission.annotation)


def _moment(frame: Annotated, time: str) -> str:
    """Return what the watermark is compared with: of a window, its end."""
    is_window = isinstance(frame.df.schema[time].dataType, T.StructType)
    return f"{quote(time)}.`end`" if is_window else quote(time)
