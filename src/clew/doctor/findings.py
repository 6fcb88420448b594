"""What a check found: one line each, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clew import show

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
        name: What was looked at.
        state: `ok`; `warning` for what may surprise; `problem` for what does not work.
        found: What was found.
        todo: What to do about it; empty if nothing is to be done.
    """

    name: str
    state: State
    found: str
    todo: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return it as plain data."""
        return {"name": self.name, "state": self.state, "found": self.found, "todo": self.todo}


@dataclass(frozen=True, repr=False)
class Health:
    """Everything that was found."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem; there may be warnings."""
        return not self.problems

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What does not work."""
        return tuple(each for each in self.findings if each.state == "problem")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What may surprise."""
        return tuple(each for each in self.findings if each.state == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain data that JSON can hold."""
        return {
            "ok": self.ok,
            "problems": len(self.problems),
            "warnings": len(self.warnings),
            "findings": [each.to_dict() for each in self.findings],
        }

    def lines(self) -> list[show.Line]:
        """Show the findings, each with what to do."""
        width = max((len(each.name) for each in self.findings), default=0)
        lines = []
        for each in self.findings:
            part: show.Part = "row" if each.state == "ok" else "warning"
            text = f"{each.state:<7}  {each.name:<{width}}  {each.found}"
            lines.append(show.Line(part, show.escape(text)))
            if each.todo:
                lines.append(show.Line("note", show.escape(f"{'':<{width + 11}}{each.todo}")))
        problems, warnings = len(self.problems), len(self.warnings)
        head = f"{show.count(problems, 'problem')}, {show.count(warnings, 'warning')}"
        return [*lines, show.Line("headline", head)]

    def __repr__(self) -> str:
        return show.join(self.lines())
