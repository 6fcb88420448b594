"""Where lines go: files of a folder, or a Kafka topic.

A file is written under a hidden name, flushed to disk and renamed, so a reader of the folder (Spark
passes hidden names over) sees it whole or not at all. To Kafka, lines are sent with an idempotent
producer and are there when `send` returns.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from clew.exceptions import EmitError
from clew.store.layout import quote_name

if TYPE_CHECKING:
    from collections.abc import Sequence

KAFKA = "kafka"
_SECONDS = 60.0


class Channel(Protocol):
    """Takes lines, each with the machine that it comes from."""

    def send(self, lines: Sequence[tuple[str, str]]) -> None:
        """Publish lines, in order; on return they are there."""


def open_channel(to: str, job: str) -> Channel:
    """Open the place that an emitter was told to write to.

    Raises:
        EmitError: It cannot be written to.
    """
    parts = urlsplit(to)
    if parts.scheme == KAFKA:
        return KafkaChannel(parts.netloc, parts.path.strip("/") or job)
    if "://" in to and parts.scheme != "file":
        msg = (
            f"events cannot be published to `{to}`.\n\nName a folder, or a topic as "
            "`kafka://host:9092/topic`."
        )
        raise EmitError(msg)
    return FileChannel(Path(parts.path if parts.scheme == "file" else to), job)


class FileChannel:
    """A folder in which each `send` makes one file."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder = folder
        self._stem = quote_name(job)
        self._own = uuid.uuid4().hex
        self._number = 0

    def send(self, lines: Sequence[tuple[str, str]]) -> None:
        """Write lines into a new file.

        Raises:
            EmitError: The folder cannot be written.
        """
        name = f"{self._stem}-{self._own}-{self._number:06d}.jsonl"
        self._number += 1
        draft = self._folder / f".{name}.tmp"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with draft.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for _, line in lines)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self._folder / name)
        except OSError as error:
            msg = (
                f"events cannot be written to `{self._folder}`: {error.strerror or error}.\n\n"
                "Name a folder that every process of the job may write."
            )
            raise EmitError(msg) from error


class KafkaChannel:
    """A topic; lines of one machine go to one partition."""

    def __init__(self, servers: str, topic: str) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError as error:
            msg = (
                "publishing to Kafka needs the package `confluent-kafka`, which is not installed."
                "\n\nInstall it: `pip install 'clew[kafka]'`; or publish to a folder."
            )
            raise EmitError(msg) from error
        self._topic = topic
        self._servers = servers
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
        )

    def send(self, lines: Sequence[tuple[str, str]]) -> None:
        """Send lines and wait until the brokers have them.

        Raises:
            EmitError: They do not have them after a minute.
        """
        failed: list[str] = []

        def note(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(str(error))

        for node, line in lines:
            while True:
                try:
                    self._producer.produce(self._topic, line.encode(), node.encode(), callback=note)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        left = self._producer.flush(_SECONDS)
        if left or failed:
            why = failed[0] if failed else f"{left} of {len(lines)} lines are not acknowledged"
            msg = (
                f"events did not reach the topic `{self._topic}` of `{self._servers}`: {why}.\n\n"
                "Check that the brokers can be reached; then let the job publish again: a reducer "
                "takes an event that comes twice as one."
            )
            raise EmitError(msg)
