"""What a reduction is asked to do, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.exceptions import ReduceSettingError
from clew.plan.duration import micros

if TYPE_CHECKING:
    from collections.abc import Sequence

MODES = ("watermark", "grouping", "window")
PARTITIONINGS = ("source", "function", "node", "random", "lineage")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a job's provenance is reduced.

    Attributes:
        job: The job; statements of others are left out.
        mode: How early elimination is avoided.
        partitioning: What goes to the same local reducer.
        partitions: How many local reducers there are; None for as many as Spark has cores.
        local_batch: After how many elements a local reducer hands on what it has.
        global_batch: After how many edges the global reducer folds them in.
        delay: For how long after something was named it may be named again.
        window: How many past edges a sliding window remembers.
        single_use: Each intermediate entity is made by one function execution and used by one.
        flush: The global reducer lets go of all edges between entities at each global batch.
        keep_apart: Other relations and attributes are kept in a table of their own.
    """

    job: str
    mode: str = "watermark"
    partitioning: str = "source"
    partitions: int | None = None
    local_batch: int = 20_000
    global_batch: int = 1_000_000
    delay: str = "10 minutes"
    window: int = 1_000
    single_use: bool = False
    flush: bool = False
    keep_apart: bool = False

    def __post_init__(self) -> None:
        _choice("mode", self.mode, MODES)
        _choice("partitioning", self.partitioning, PARTITIONINGS)
        if not self.job:
            raise ReduceSettingError("job", self.job, "the name of the job, not an empty text")
        for name in ("local_batch", "global_batch"):
            _at_least(name, getattr(self, name), 1)
        _at_least("window", self.window, 0)
        if self.partitions is not None:
            _at_least("partitions", self.partitions, 1)
        if micros(self.delay) is None:
            raise ReduceSettingError("delay", self.delay, 'a length of time such as "10 minutes"')
        if self.flush and self.mode != "grouping":
            allowed = '`mode="grouping"` beside it: elsewhere what is final is known'
            raise ReduceSettingError("flush", self.flush, allowed)
        if self.single_use and self.mode == "window":
            allowed = 'a mode that is exact, `"watermark"` or `"grouping"`'
            raise ReduceSettingError("single_use", self.single_use, allowed)

    @property
    def delay_micros(self) -> int:
        """The delay in microseconds."""
        return micros(self.delay) or 0

    def watermark(self, latest: int | None) -> int | None:
        """Return the moment before which things are named no more, if there is one."""
        if self.mode != "watermark" or latest is None:
            return None
        return latest - self.delay_micros


def _choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ReduceSettingError(name, value, "one of " + ", ".join(f'`"{a}"`' for a in allowed))


def _at_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ReduceSettingError(name, value, f"a whole number, {least} or more")
