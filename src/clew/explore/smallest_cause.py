"""Addresses that find a minimal cause: begin a search, watch it, stop it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from clew.ask.minimize import Minimal
from clew.explore.answers import BegunAnswer, JobAnswer, MinimizeQuestion
from clew.explore.failures import FAILURES, again_if_stale
from clew.explore.parameters import Opened, answer
from clew.explore.searches import Job, Jobs
from clew.plan.condition import parse_condition

router = APIRouter(prefix="/api", tags=["minimal cause"], responses=FAILURES)


def _jobs(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


Searches = Annotated[Jobs, Depends(_jobs)]
JobName = Annotated[str, Query(description="the search", max_length=100)]


@router.post("/minimize", response_model=BegunAnswer)
def begin(provenance: Opened, jobs: Searches, question: MinimizeQuestion) -> JSONResponse:
    """Begin to find the fewest source rows of a result that still produce it."""
    condition = parse_condition(question.condition) if question.condition else None
    found = again_if_stale(lambda: provenance.row(question.stream, question.row))

    def search(job: Job) -> Minimal:
        return provenance.minimize(
            question.stream,
            found,
            condition,
            progress=job.note,
            stop=job.is_stopped,
        )

    return answer({"job": jobs.begin(search).name})


@router.get("/minimize", response_model=JobAnswer)
def watch(jobs: Searches, job: JobName) -> JSONResponse:
    """Say how far a search is, and what it found."""
    return answer(jobs.find(job).to_dict())


@router.delete("/minimize", response_model=JobAnswer)
def stop(jobs: Searches, job: JobName) -> JSONResponse:
    """Ask a search to end; the smallest set so far is then its answer."""
    found = jobs.find(job)
    found.stop()
    return answer(found.to_dict())
