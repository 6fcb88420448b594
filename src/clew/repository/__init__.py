"""The repository of a workflow: reduced provenance of many jobs, merged by shared identifiers.

Jobs of any system say which entities were derived from which; `put_reduced` keeps that in a store,
where an output of one job that is an input of another is one entity. `clew.open` then answers over
the whole workflow.
"""

from __future__ import annotations

from clew.repository.jobs import end_job
from clew.repository.put import put_reduced

__all__ = ["end_job", "put_reduced"]
