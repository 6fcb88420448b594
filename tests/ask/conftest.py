"""The road store, open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.ask.provenance import open_store
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.ask.provenance import Provenance


@pytest.fixture(scope="session")
def road_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_road(tmp_path_factory.mktemp("road") / "prov").root


@pytest.fixture
def road(road_path: Path) -> Iterator[Provenance]:
    with open_store(road_path) as provenance:
        yield provenance
