"""Commands that tell other systems of what a store holds."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from clew.cli.output import print_json
from clew.cli.parser import add_command, add_follow, add_json, whole_number

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_openlineage(commands)


def _openlineage(provenance: Provenance, options: argparse.Namespace) -> None:
    known: set[str] = set()
    while True:
        found = provenance.openlineage(
            options.namespace, since_batch=options.since_batch, every=options.batches
        )
        new = [each for each in found if json.dumps(each, sort_keys=True) not in known]
        if new or not known:
            _hand_over(found, new, options)
        known.update(json.dumps(each, sort_keys=True) for each in new)
        if not options.follow:
            return
        sys.stdout.flush()
        time.sleep(options.every)


def _hand_over(found: list[Any], new: list[Any], options: argparse.Namespace) -> None:
    """Write all events to the file, or send those that the server has not got."""
    from clew.show import openlineage, send

    if options.url is not None:
        send.send(new, options.url, timeout=options.timeout, retries=options.retries)
    elif options.to is not None:
        openlineage.write(found, options.to)
    elif not options.json:
        sys.stdout.write(openlineage.to_lines(new))
        return
    else:
        print_json({"events": new})
        return
    count = len(new if options.url is not None else found)
    if options.json:
        print_json({"events": count, "to": options.to, "url": options.url})
    else:
        print(f"{count} events {'sent' if options.url is not None else 'written'}")


def _add_openlineage(commands: Any) -> None:
    parser = add_command(
        commands,
        "openlineage",
        _openlineage,
        "tell a catalog of OpenLineage which query read and wrote what",
        "clew openlineage prov/ --url http://localhost:5000",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="FILE", help="write the events to a file, one a line")
    where.add_argument(
        "--url",
        metavar="URL",
        help="send the events to a server, with the token in OPENLINEAGE_API_KEY if there is one "
        "(default: print them)",
    )
    parser.add_argument(
        "--namespace", metavar="NAME", default="clew", help="the namespace of jobs (default: clew)"
    )
    parser.add_argument(
        "--since-batch",
        metavar="N",
        type=whole_number,
        default=0,
        help="leave out what is only about batches before this one",
    )
    parser.add_argument(
        "--batches",
        metavar="N",
        type=whole_number,
        default=100,
        help="how many batches one event tells of (default: 100)",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=10.0, help="wait for an answer so long"
    )
    parser.add_argument(
        "--retries", metavar="N", type=whole_number, default=3, help="try again so often"
    )
    add_follow(parser, every=10.0)
    add_json(parser)
