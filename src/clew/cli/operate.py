"""Commands for whoever runs a store: how large it is, what may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import print_json, print_lines
from clew.cli.parser import add_command, add_json

if TYPE_CHECKING:
    import argparse

    from clew.query.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_size(commands)


def _size(provenance: Provenance, options: argparse.Namespace) -> None:
    size = provenance.size()
    if options.json:
        print_json(size.to_dict())
    else:
        print_lines(size.lines())


def _add_size(commands: Any) -> None:
    parser = add_command(
        commands,
        "size",
        _size,
        "say how large a store is, by query and by kind",
        "clew size prov/",
    )
    add_json(parser)
