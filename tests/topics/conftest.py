"""A broker, and a session that can talk to it; only `make test-kafka` asks for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from topics.broker import broker as running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

_JARS = os.environ.get("CLEW_TEST_KAFKA")

if _JARS is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker."""
    assert _JARS is not None
    with running_broker(Path(_JARS), tmp_path_factory.mktemp("kafka") / "broker") as address:
        yield address
