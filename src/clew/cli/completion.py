"""Completion in the shell: scripts that ask `clew` itself what could come next.

The scripts are a few lines each and know nothing: they hand over the words so far, and what is
printed, one candidate a line, is offered. So options are never out of date, and the streams of the
store that the line names can be offered as well. Where nothing is printed, the shell offers files.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from clew.cli.output import print_json
from clew.cli.parser import add_command, add_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPLETE = "__complete"

_BASH = """\
_clew() {
  local IFS=$'\\n'
  COMPREPLY=($(clew __complete "$COMP_CWORD" "${COMP_WORDS[@]:1}" 2>/dev/null))
  if [ ${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o default 2>/dev/null
  fi
}
complete -F _clew clew
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_FISH = """\
function __clew_complete
  set -l words (commandline -opc)
  clew __complete (count $words) $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c clew -a '(__clew_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH + _BASH, "fish": _FISH}

_STREAMS = frozenset({"STREAM", "QUERY"})


def add(commands: Any) -> None:
    """Add the commands of this file."""
    parser = add_command(
        commands,
        "completion",
        _completion,
        "print a script that lets a shell complete commands, options and streams",
        'eval "$(clew completion bash)"',
        has_path=False,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell")
    add_json(parser)


def _completion(options: argparse.Namespace) -> None:
    script = SCRIPTS[options.shell]
    if options.json:
        print_json({"shell": options.shell, "script": script})
    else:
        print(script, end="")


def candidates(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    """Print what could stand at a place of a command line.

    Args:
        parser: The parser of the whole command.
        arguments: The place, counted from the command's own name, and the words behind that name.
    """
    place, *words = arguments or ["1"]
    at = int(place) - 1 if place.isdigit() else len(words)
    before, begun = words[:at], words[at] if at < len(words) else ""
    for each in sorted(set(_possible(parser, before, begun))):
        if each.startswith(begun):
            print(each)
    return 0


def _possible(parser: argparse.ArgumentParser, before: list[str], begun: str) -> Iterator[str]:
    commands = _commands(parser)
    named = next((i for i, each in enumerate(before) if each in commands), None)
    if named is None:
        yield from _options(parser) if begun.startswith("-") else commands
        return
    own, words = commands[before[named]], before[named + 1 :]
    if begun.startswith("-"):
        yield from _options(own)
        return
    wanted, path = _place(own, words)
    for action in wanted:
        if action.choices is not None:
            yield from map(str, action.choices)
        elif action.metavar in _STREAMS and path is not None:
            yield from _streams(path)


def _place(
    parser: argparse.ArgumentParser, words: list[str]
) -> tuple[list[argparse.Action], str | None]:
    """Say what may stand behind some words: values of an option, or an argument; and the store."""
    options = {name: action for action in _actions(parser) for name in action.option_strings}
    waiting = [each for each in _actions(parser) if not each.option_strings]
    given: dict[str, str] = {}
    current: argparse.Action | None = None
    for word in words:
        if word in options:
            current = options[word] if options[word].nargs != 0 else None
        elif current is not None:
            given[current.dest] = word
            # An option that takes several values may take one more.
            current = current if current.nargs in ("+", "*") else None
        elif waiting:
            given[waiting.pop(0).dest] = word
    path = given.get("path") or given.get("store")
    return ([current] if current is not None else waiting[:1]), path


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 (argparse has no other way to ask)


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [name for each in _actions(parser) for name in each.option_strings if name[:2] == "--"]


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (as above)
            return dict(action.choices)
    return {}


def _streams(path: str) -> list[str]:
    """List the streams of a store by the names of its files, which takes no time."""
    files = Path(path).expanduser().glob("streams/*.json")
    return [unquote(each.stem) for each in files if not each.name.startswith(".")]
