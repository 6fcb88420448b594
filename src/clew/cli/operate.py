"""Commands for whoever runs a store: how large it is, what may go, whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import print_answer, tell
from clew.cli.parser import STORE, add_command, add_json

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_size(commands)
    _add_prune(commands)
    _add_doctor(commands)


def _size(provenance: Provenance, options: argparse.Namespace) -> None:
    size = provenance.size()
    print_answer(size, options)


def _prune(provenance: Provenance, options: argparse.Namespace) -> None:
    done = provenance.prune(
        options.older_than, by=options.by, streams=options.stream, dry_run=options.dry_run
    )
    print_answer(done, options)


def _doctor(options: argparse.Namespace) -> int:
    from clew.doctor import check

    health = check(options.path, spark=options.spark, progress=tell)
    print_answer(health, options)
    return 0 if health.ok else 1


def _add_size(commands: Any) -> None:
    parser = add_command(
        commands,
        "size",
        _size,
        "say how large a store is, by query and by kind",
        "clew size prov/",
    )
    add_json(parser)


def _add_prune(commands: Any) -> None:
    parser = add_command(
        commands,
        "prune",
        _prune,
        "take the provenance of old batches out of a store, for good",
        'clew prune prov/ --older-than "30 days" --dry-run',
    )
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        required=True,
        help='how old: a length of time ("30 days", "12 hours") or a moment in UTC',
    )
    parser.add_argument(
        "--by",
        choices=("commit", "event"),
        default="commit",
        help="what counts: when a batch was committed, or the event time of its latest result "
        "(default: commit)",
    )
    parser.add_argument(
        "--stream",
        metavar="STREAM",
        nargs="+",
        action="extend",
        help="only batches of these queries (default: all)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_json(parser)


def _add_doctor(commands: Any) -> None:
    parser = add_command(
        commands,
        "doctor",
        _doctor,
        "check Java, Spark, Python and a store, and say what to do",
        "clew doctor prov/ --spark",
        has_path=False,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help=f"{STORE} (default: none)")
    parser.add_argument("--spark", action="store_true", help="also run a small Spark job")
    add_json(parser)
