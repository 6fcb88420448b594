"""Pipelines of this process are remembered, and not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.again import known as module
from clew.again.known import Known, recall, remember

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_pipelines_that_were_used_longest_ago_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    monkeypatch.setattr(module, "_known", {})
    one: Any = object()
    known = Known(one, one, "1")
    remember(tmp_path, "a", known)
    remember(tmp_path, "b", known)

    assert recall(tmp_path, "a") is known
    remember(tmp_path, "c", known)

    assert recall(tmp_path, "b") is None
    assert (recall(tmp_path, "a"), recall(tmp_path, "c")) == (known, known)
