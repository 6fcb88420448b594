"""The command line of clew."""

from __future__ import annotations

from clew.cli.main import main

__all__ = ["main"]
