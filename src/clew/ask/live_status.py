"""How far a live graph is, as text and as plain data."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clew import show

if TYPE_CHECKING:
    from clew.live.graph import GraphStatus, Member


def to_dict(status: GraphStatus) -> dict[str, Any]:
    """Return a status as plain data that JSON can hold."""
    said = asdict(status)
    for each in (said, *said["members"]):
        for key, value in each.items():
            if isinstance(value, dt.datetime):
                each[key] = show.iso(value)
    return said


def lines(status: GraphStatus) -> list[show.Line]:
    """Show a status: a sentence, and a line for each query."""
    at = "no watermark yet" if status.at is None else f"at {show.iso(status.at)}"
    headline = (
        f"{status.name} ({status.engine}), {at}: {status.vertices:,} vertices, "
        f"{status.edges:,} edges, {status.labels:,} labels; {show.count(status.alive, 'row')} alive"
    )
    return [
        show.Line("headline", show.escape(headline)),
        *[show.Line("note", show.escape(_member(each))) for each in status.members],
    ]


def _member(member: Member) -> str:
    mark = "no watermark yet" if member.watermark is None else show.iso(member.watermark)
    parts = [f"{member.query}: batch {'-' if member.batch is None else member.batch}, {mark}"]
    if member.idle:
        parts.append(f"idle for {member.still_for:.0f} s, so it holds nothing back")
    if member.left_out:
        parts.append(f"{show.count(member.left_out, 'result')} left out, on rows expired before")
    if member.gaps:
        parts.append(f"{show.count(member.gaps, 'batch')} without provenance")
    return "; ".join(parts)
