"""Which topic a name stands for: one that was deleted and made again has the same name and offsets.

Kafka gives each topic an id of its own, which its admin client tells; that is an extra
(`clew[kafka]`), so without it, or where more than an address is needed to reach Kafka, nothing is
noted.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clew.exceptions import SourceChangedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SERVERS = "kafka.bootstrap.servers"
_SECONDS = 5.0
_log = logging.getLogger("clew")
_unreachable: set[str] = set()


def topic_ids(options: Mapping[str, str], topics: Collection[str]) -> dict[str, str]:
    """Ask Kafka for the ids of topics; those that are not there, or not known, are left out."""
    servers = options.get(_SERVERS)
    if servers is None or len(options) > 1 or servers in _unreachable or not topics:
        return {}
    try:
        from confluent_kafka import KafkaException, TopicCollection
    except ImportError:
        return {}
    try:
        asked = _client(servers).describe_topics(
            TopicCollection(sorted(topics)), request_timeout=_SECONDS
        )
    except KafkaException:
        return {}
    found = {topic: _id_in(answer) for topic, answer in asked.items()}
    if None in found.values():
        # Each batch would wait for it again.
        _log.warning("the ids of topics cannot be looked up: Kafka does not answer")
        _unreachable.add(servers)
    return {topic: each for topic, each in found.items() if each}


def _id_in(answer: Any) -> str | None:
    """Read the id out of an answer: an empty one if there is no such topic, None for no answer."""
    from confluent_kafka import KafkaException

    try:
        return str(answer.result(_SECONDS).topic_id)
    except KafkaException as error:
        return None if error.args[0].code() < 0 else ""  # below zero nobody answered
    except TimeoutError:
        return None


def refuse_other_topics(
    options: Mapping[str, str], noted: Mapping[int, Mapping[str, str]], read: Collection[int]
) -> None:
    """Refuse to take topics for those that batches read if they are others by now.

    Args:
        options: How Kafka is reached.
        noted: The ids of topics, by the batch that read them.
        read: The batches whose records are read again.

    Raises:
        SourceChangedError: A topic was made again, is gone, or cannot be compared.
    """
    before = [(topic, each, n) for n in sorted(read) for topic, each in noted.get(n, {}).items()]
    if not before:
        return
    now = topic_ids(options, {topic for topic, _, _ in before})
    for topic, each, batch in before:
        if now.get(topic) == each:
            continue
        what = f"topic {topic!r} was deleted and made again after batch {batch} had read it"
        if topic not in now:
            what = (
                f"topic {topic!r}, which batch {batch} read, is gone or cannot be compared: its id "
                "is looked up with `pip install clew[kafka]` where Kafka is reached"
            )
        raise SourceChangedError(what)


@lru_cache(maxsize=8)
def _client(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    # A broker that goes away is no news: whoever asks next is told.
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})
