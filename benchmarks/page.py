"""What the pages on measurements share: a chart of rates, tables, and how both get into a page.

A chart is plain SVG; its colours follow the reader's light or dark setting. Tables are Markdown and
stand in their page between two marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

TOP = 74
"""Where the rows of a chart begin, in pixels from its upper edge."""

_MARKS = ("<!-- measured -->", "<!-- /measured -->")
_WIDTH = 840
_MOST = 1.25


@dataclass(frozen=True)
class Chart:
    """Bars for rates, where plain Spark is 1.

    Attributes:
        title: Its title.
        left: Where the bars begin, in pixels.
        right: How much is left for words behind the longest bar.
        colours: The colour of each kind of bar, light and dark.
        legend: What else there is to say beside the kinds.
        style: More style sheet.
    """

    title: str
    left: int
    right: int
    colours: Mapping[str, tuple[str, str]]
    legend: str
    style: str = ""

    def draw(self, parts: Iterable[str], bottom: float) -> str:
        """Put a chart together from its rows, which end at `bottom`."""
        height = bottom + 34
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
                    f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="t">'
                ),
                f'<title id="t">{self.title}</title>',
                f"<style>{self._style()}</style>",
                text(12, 24, self.title, "title"),
                *self._legend(),
                *self._grid(bottom),
                *parts,
                "</svg>",
                "",
            ]
        )

    def x(self, value: float) -> float:
        """Return where a rate stands, in pixels."""
        return round(self.left + min(value, _MOST) / _MOST * (_WIDTH - self.left - self.right), 1)

    def bar(self, value: float, y: float, height: float, kind: str, said: str) -> str:
        """Draw a bar, with words for whoever points at it."""
        width = round(self.x(value) - self.left, 1)
        return (
            f'<rect class="{kind}" x="{self.left}" y="{y}" width="{width}" height="{height}" '
            f'rx="1.5"><title>{escape(said)}</title></rect>'
        )

    def spread(self, low: float, high: float, y: float) -> str:
        """Draw a line from the lowest rate to the highest."""
        return f'<line class="spread" x1="{self.x(low)}" x2="{self.x(high)}" y1="{y}" y2="{y}"/>'

    def _style(self) -> str:
        light, dark = (
            " ".join(f".{kind} {{ fill: {each[i]}; }}" for kind, each in self.colours.items())
            for i in (0, 1)
        )
        return f"""
text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }}
.title {{ font-weight: 600; font-size: 15px; }}
.query {{ font-weight: 600; }}
.faint {{ fill: #59636e; }}
.grid {{ stroke: #d1d9e0; }}
.one {{ stroke: #59636e; stroke-dasharray: 3 3; }}
.spread {{ stroke: #1f2328; }}
{light}
{self.style}@media (prefers-color-scheme: dark) {{
  text {{ fill: #f0f6fc; }}
  .faint {{ fill: #9198a1; }}
  .grid {{ stroke: #3d444d; }}
  .one {{ stroke: #9198a1; }}
  .spread {{ stroke: #f0f6fc; }}
  {dark}
}}
"""

    def _legend(self) -> list[str]:
        out, x = [], 12
        for kind in self.colours:
            out.append(f'<rect class="{kind}" x="{x}" y="40" width="12" height="12" rx="1.5"/>')
            out.append(text(x + 17, 50, kind, ""))
            x += 90
        return [*out, text(x, 50, self.legend, "faint")]

    def _grid(self, bottom: float) -> list[str]:
        out = []
        for value in (0, 0.25, 0.5, 0.75, 1, 1.25):
            kind = "one" if value == 1 else "grid"
            x = self.x(value)
            out.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom + 6}"/>')
            out.append(text(x - 8, bottom + 22, f"{value:g}", "faint"))
        return out


def text(x: float, y: float, words: str, kind: str) -> str:
    """Write words into a chart."""
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """Write a number with two decimals; nothing for none."""
    # Adding 0 turns a rounded -0.0 into 0.0.
    return "" if value is None else f"{round(value, 2) + 0:.2f}"


def count(value: int | None) -> str:
    """Write a whole number; nothing for none."""
    return "" if value is None else f"{value:,}"


def measured_on(result: Mapping[str, Any]) -> str:
    """Say which machine the numbers are from."""
    machine = result["machine"]
    return (
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, Spark "
        f"{machine['spark']}, Java {machine['java']}, Python {machine['python']}. State store: "
        f"{result['state_store']}. Other processes used {machine['cores_used_by_others']} cores."
    )


def bring_up_to_date(page: Path, picture: str, tables: str) -> None:
    """Put a picture beside a page, and tables between its marks."""
    page.with_suffix(".svg").write_text(picture)
    before, _, rest = page.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    page.write_text(f"{before}{_MARKS[0]}\n{tables}\n{_MARKS[1]}{after}")
