"""The command line: parse, ask, print.

Every command is one call of `clew.ask` and one way to show the answer. Answers go to standard
output, as text or with `--json` as JSON and nothing else; errors go to standard error, without a
traceback. Exit codes: 0 for an answer, 1 if the question cannot be answered, 2 for wrong usage.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

from clew.cli import (
    asking,
    browser,
    causes,
    completion,
    follow,
    operate,
    pictures,
    publish,
    recorded,
    repeating,
    rows,
)
from clew.cli.completion import COMPLETE, candidates
from clew.cli.output import complain
from clew.cli.parser import Formatter, Parser, add_command
from clew.exceptions import ClewError
from clew.prov import command as reduce_command
from clew.version import __version__

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from clew.ask.provenance import Provenance
    from clew.frame.frame import TracedFrame
    from clew.limits import Limits


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except ClewError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:
        # The reader of our output is gone, as in `clew rows ... | head`. What Python still has
        # in its buffer must go nowhere, or it complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    return code


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["demo"]:
        from clew.workloads.demo import main as demo

        return demo(arguments[1:])
    if arguments[:1] == [COMPLETE]:
        return candidates(_parser(), arguments[1:])
    options = _parser().parse_args(arguments)
    if options.no_pager:
        os.environ["CLEW_PAGER"] = ""
    if not options.has_path:
        return options.command(options) or 0
    from clew.ask.provenance import open_store

    command: Callable[[Provenance, argparse.Namespace], int | None] = options.command
    trust = getattr(options, "trust", False)
    pipelines, limits = _pipelines(options), _limits(options)
    with open_store(options.path, pipelines=pipelines, trust=trust, limits=limits) as provenance:
        return command(provenance, options) or 0


def _limits(options: argparse.Namespace) -> Limits | None:
    """Return the limits that were named; for those who ask over HTTP there are always some."""
    from clew.limits import Limits

    named: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("seconds", "memory")
        if getattr(options, name) is not None
    }
    return Limits(**named) if named or options.command is browser.run else None


def _pipelines(options: argparse.Namespace) -> dict[str, TracedFrame]:
    named = getattr(options, "pipeline", None)
    if named is None:
        return {}
    from clew.pipelines import load_pipeline

    return load_pipeline(named, options.stream)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="clew",
        description="Row-level provenance for Apache Spark: ask a store where rows came from.",
        epilog="example: clew backward prov/ stopped car=7",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"clew {__version__}")
    parser.add_argument(
        "--no-pager", action="store_true", help="print long answers without a pager"
    )
    parser.add_argument(
        "--seconds", metavar="N", type=float, help="how long a question may take (default: 300)"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="how much memory a question may use, as in 8GB (default: half of the machine's)",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    questions, running = (
        (asking, pictures, causes, recorded),
        (repeating, follow, rows, operate, publish),
    )
    for part in (*questions, *running, browser, completion):
        part.add(commands)
    _add_reduce(commands)
    # `demo` is handed over before parsing, with all its own options; here it is only listed.
    commands.add_parser("demo", help="run an example pipeline and trace one of its results")
    return parser


def _add_reduce(commands: Any) -> None:
    parser = add_command(
        commands,
        "reduce",
        reduce_command.run,
        "reduce the provenance of another system to what connects inputs with outputs",
        "clew reduce events/ --store prov/ --job hashtags",
        has_path=False,
    )
    reduce_command.add_options(parser)
