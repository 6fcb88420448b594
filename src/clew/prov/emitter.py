"""The emitter: what a job says of its function executions.

The one rule that shapes this file: the events of one execution are published together or not at
all. A reducer must never see half of an execution, and an execution that failed has generated
nothing, so events wait in the execution until it ends well.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
import sys
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.prov.channel import open_channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.prov.channel import Channel

BUFFERED = 10_000
"""So many lines an emitter that is open for long holds back before it publishes them."""


class Emitter:
    """Publishes the provenance of one job.

    Inside `with`, lines are collected and published together; without, each execution is
    published as it ends. A copy that was sent to another process begins outside of any `with`.

    Args:
        to: A folder, or a topic as `kafka://host:9092/topic`. Files in the folder appear whole,
            under names of their own, so any number of processes may share it.
        job: The job.
        node: The machine; its name if left out.
        grouped: Publish an execution as one line. Else each `used` and `wasGeneratedBy` is a line.
        buffer: After so many lines what was collected is published.

    Examples:
        >>> with Emitter("events/", job="hashtags") as emit:  # doctest: +SKIP
        ...     with emit.execution("count") as run:
        ...         run.used("tweet/1")
        ...         run.generated("tag/spark")
    """

    def __init__(
        self,
        to: str | os.PathLike[str],
        job: str,
        *,
        node: str | None = None,
        grouped: bool = True,
        buffer: int = BUFFERED,
    ) -> None:
        self.to = os.fspath(to)
        self.job = job
        self.node = node
        self.grouped = grouped
        self.buffer = buffer
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: list[tuple[str, str]] = []
        self._channel: Channel | None = None
        self._open = 0
        self._next = 0
        self._executions = 0
        self._own = uuid.uuid4().hex[:12]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def __enter__(self) -> Emitter:
        self._open += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._open -= 1
        if not self._open:
            self.flush()

    @contextmanager
    def execution(
        self,
        function: str,
        *,
        key: str | None = None,
        node: str | None = None,
        partition: int | None = None,
    ) -> Iterator[Execution]:
        """Note what one execution of a function uses and generates.

        If the block raises, nothing of it is published.

        Args:
            function: The function.
            key: What tells this execution from others, if it should have the same name when the
                job runs it again; a new name is made up if left out.
            node: The machine, if not the emitter's.
            partition: The part of the data; inside a Spark task its partition if left out.
        """
        run = Execution(f"{self.job}:{function}/{key or self._new_key()}")
        yield run
        common = {
            "job": self.job,
            "function": function,
            "node": node or self.node or socket.gethostname(),
            "partition": _partition() if partition is None else partition,
            "time": _now(),
            "group": run.activity,
        }
        events = run.grouped() if self.grouped else run.statements()
        self._publish([{**each, **common} for each in events])

    def derived(self, generated: str, used: str) -> None:
        """Note that an entity was derived from another, by whatever activity."""
        self._say({"prov": "wasDerivedFrom", "generatedEntity": generated, "usedEntity": used})

    def member(self, collection: str, entity: str) -> None:
        """Note that an entity is a member of a collection."""
        self._say({"prov": "hadMember", "collection": collection, "entity": entity})

    def end(self) -> None:
        """Note that the job has ended: nothing more will come of it."""
        self._say({"prov": "end"})

    def flush(self) -> None:
        """Publish what was collected."""
        with self._lock:
            held, self._held = self._held, []
            if held:
                self._channel = self._channel or open_channel(self.to, self.job)
                self._channel.send(held)

    def _new_key(self) -> str:
        with self._lock:
            self._executions += 1
            return f"{self._own}-{self._executions}"

    def _say(self, event: dict[str, Any]) -> None:
        where = {"node": self.node or socket.gethostname(), "partition": _partition()}
        self._publish([{**event, "job": self.job, **where, "time": _now()}])

    def _publish(self, events: list[dict[str, Any]]) -> None:
        with self._lock:
            for event in events:
                line = json.dumps({**event, "seq": self._next}, ensure_ascii=False)
                self._held.append((event["node"], line))
                self._next += 1
            is_due = not self._open or len(self._held) >= self.buffer
        if is_due:
            self.flush()


class Execution:
    """One execution of a function: what it used, what it generated.

    Attributes:
        activity: Its name.
    """

    def __init__(self, activity: str) -> None:
        self.activity = activity
        self._used: dict[str, None] = {}
        self._generated: dict[str, None] = {}

    def used(self, *entities: str) -> None:
        """Note that entities were read."""
        self._used.update(dict.fromkeys(entities))

    def generated(self, *entities: str) -> None:
        """Note that entities were written; each was derived from everything that was used."""
        self._generated.update(dict.fromkeys(entities))

    def grouped(self) -> list[dict[str, Any]]:
        """Return all of it as one event; none if nothing was noted."""
        if not self._used and not self._generated:
            return []
        ends = {"used": list(self._used), "generated": list(self._generated)}
        return [{"prov": "group", "activity": self.activity, **ends}]

    def statements(self) -> list[dict[str, Any]]:
        """Return one event for each thing used and each thing generated."""
        sides = (("used", self._used), ("wasGeneratedBy", self._generated))
        return [
            {"prov": kind, "activity": self.activity, "entity": entity}
            for kind, side in sides
            for entity in side
        ]


def _now() -> str:
    now = dt.datetime.now(dt.timezone.utc)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _partition() -> int:
    """Return the partition of the Spark task that this runs in; 0 outside of one."""
    if "pyspark" not in sys.modules:
        return 0
    from pyspark import TaskContext

    task = TaskContext.get()
    return 0 if task is None else task.partitionId()
