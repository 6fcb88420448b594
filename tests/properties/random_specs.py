"""A seed gives a pipeline, and hypothesis may draw one: start at `random_spec`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from properties.operator_tree import Spec
from properties.random_batches import BatchMaker
from properties.random_rows import draw_data
from properties.random_steps import Steps
from properties.random_streams import StreamMaker

if TYPE_CHECKING:
    from properties.row_form import Batches, Tables


def draw_spec(rng: random.Random, *, streaming: bool) -> Spec:
    """Draw a pipeline from a random number generator."""
    steps = Steps(rng)
    maker = StreamMaker(steps) if streaming else BatchMaker(steps)
    return Spec(maker.draw(), streaming)


def random_spec(seed: int, *, streaming: bool) -> Spec:
    """Draw the pipeline of a seed; the same one on every call and every machine."""
    return draw_spec(random.Random(f"spec {seed} {streaming}"), streaming=streaming)


@st.composite
def specs(draw: st.DrawFn, *, streaming: bool) -> Spec:
    """Let hypothesis draw pipelines, and shrink those that fail."""
    return draw_spec(draw(st.randoms(use_true_random=False)), streaming=streaming)


@st.composite
def specs_with_data(draw: st.DrawFn, *, streaming: bool) -> tuple[Spec, Tables | Batches]:
    """Let hypothesis draw pipelines together with rows for them."""
    spec = draw(specs(streaming=streaming))
    return spec, draw_data(draw(st.randoms(use_true_random=False)), spec)
