"""An answer as a drawing in layers, small enough to look at whatever the answer's size.

Rows travel from left to right: source rows, the operators they pass, the results. What does not
fit is counted. All work on rows is done on arrays; objects are made for what is shown. Start at
`draw`; `network` numbers the rows, `stages` lays out the layers, `shown` decides what is seen.
"""

from __future__ import annotations

from clew.show.drawing.draw import draw
from clew.show.drawing.drawing import Drawing, Link, Node

__all__ = ["Drawing", "Link", "Node", "draw"]
