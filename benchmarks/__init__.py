"""What is measured, and with which data.

Data and queries that no user needs are not in the package: they stand with the tests and examples,
which are found here.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "examples" / "hashtags")]
