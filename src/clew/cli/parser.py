"""What commands share in how they are parsed: one look of help, one way to name a row."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from clew.cli.output import SHOWN, complain

STORE = "the store: the folder given to .provenance()"
PIPELINE = "the pipeline, a function that takes a SparkSession and returns the traced frame"
_CONDITIONS = "column=value[,column=value] with enough columns to tell it apart"
_ROW_HELP = (
    "the row: its id (32 hexadecimal digits, the value of clew_id), segment:position of a source "
    "row, {conditions}, or the identifier of an entity that jobs published"
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others of the command."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the usage, and end."""
        self.print_usage(sys.stderr)
        complain(message)
        self.exit(2)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width, wherever it is read."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=96)


def add_command(
    commands: Any, name: str, run: Any, help_text: str, example: str, *, has_path: bool = True
) -> Any:
    """Add a command.

    Args:
        commands: What the command is added to.
        name: Its name.
        run: What runs it: a function of the open store and the options, or of the options only.
        help_text: What it does, in lower case and without a full stop.
        example: A line that a user could type.
        has_path: Whether it asks a store, whose path is then its first argument.
    """
    parser = commands.add_parser(
        name,
        help=help_text,
        description=f"{help_text[0].upper()}{help_text[1:]}.",
        epilog=f"example: {example}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=run, has_path=has_path)
    if has_path:
        parser.add_argument("path", metavar="PATH", help=STORE)
    return parser


class Conditions(argparse.Action):
    """Take a row as one word, or as several conditions that it meets, each a word."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, _: str | None = None
    ) -> None:
        """Keep what the question takes for a row."""
        row = values[0] if values else None
        if len(values) > 1:
            from clew.ask.find import unquote

            pairs = [each.partition("=") for each in values]
            unclear = next((name for name, equals, _ in pairs if not equals), None)
            if unclear is not None:
                parser.error(
                    f"a row is one word or conditions on it, and `{unclear}` is no condition; "
                    "write column=value"
                )
            row = {name: unquote(value) for name, _, value in pairs}
        setattr(namespace, self.dest, row)


def add_row(parser: Any, what: str = "the row", *, is_last: bool = True) -> None:
    """Add the arguments that name a row.

    Args:
        parser: What they are added to.
        what: What the row is, for the help.
        is_last: Nothing else comes behind it, so that it may be several words.
    """
    parser.add_argument("stream", metavar="STREAM", help=f"the stream of {what}")
    if is_last:
        words = f"{_CONDITIONS}, also as words of their own and of fields (window.start=08:03)"
        text = _ROW_HELP.format(conditions=words)
        parser.add_argument("row", metavar="ROW", nargs="+", action=Conditions, help=text)
    else:
        parser.add_argument("row", metavar="ROW", help=_ROW_HELP.format(conditions=_CONDITIONS))


def add_question(parser: Any) -> None:
    """Add the options that name a row and how far to go from it."""
    add_row(parser)
    parser.add_argument(
        "--scope",
        metavar="STREAM",
        nargs="+",
        action="extend",
        help="stop at these streams or named frames and show only their rows",
    )
    parser.add_argument(
        "--intermediate",
        action="store_true",
        help="show the rows of every stream and named frame on the way",
    )


def add_pipeline(parser: Any) -> None:
    """Add the option that hands a pipeline in."""
    text = f"{PIPELINE}; by default it is rebuilt from the store"
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION", help=text)
    add_trust(parser)


def add_trust(parser: Any) -> None:
    """Add the option that lets a store of somebody else say what is run."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="rebuild pipelines that another user's queries stored, and run them",
    )


def add_follow(parser: Any, every: float) -> None:
    """Add the options that let a command go on with what queries commit."""
    parser.add_argument(
        "--follow", action="store_true", help="go on with what queries commit; end with Ctrl-C"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=float,
        default=every,
        help=f"how often to look for new batches (default: {every:g})",
    )


def add_limit(parser: Any) -> None:
    """Add the option that limits how many rows are shown."""
    text = f"show at most N rows, all with 0 (default: {SHOWN}, with --json all)"
    parser.add_argument("--limit", metavar="N", type=whole_number, help=text)


def add_json(parser: Any) -> None:
    """Add the option for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def whole_number(text: str) -> int:
    """Read a whole number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        msg = f"a whole number, 0 or more, is needed; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
