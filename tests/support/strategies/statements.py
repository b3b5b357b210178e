"""Collections, and the CDCv2 statements of them as transports deliver them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from model.cdcv2_writer import statements
from model.consolidate import consolidate
from strategies.changes import Log, Tick, ticks

if TYPE_CHECKING:
    from reclock.change.cdcv2.message import Message


class Delivery(NamedTuple):
    """A collection in steps, and its statements: shuffled, repeated, cut in other pieces."""

    stream: list[Tick]
    messages: list[Message]

    @property
    def collection(self) -> Log:
        """All updates, consolidated."""
        return consolidate(u for tick in self.stream for u in tick.updates)


@st.composite
def deliveries(draw: st.DrawFn, log: st.SearchStrategy[Log]) -> Delivery:
    """Draw a stream, and its statements shuffled, repeated, and written again in other pieces."""
    stream = draw(ticks(log))
    whole = [Tick(stream[0].lower, stream[-1].upper, [u for t in stream for u in t.updates])]
    messages = _written(stream, draw(st.integers(1, 3)))
    for again in (stream, whole):
        if draw(st.booleans()):
            messages += _written(again, draw(st.integers(1, 3)))
    return Delivery(stream, draw(st.permutations(messages)))


def _written(stream: list[Tick], at_most: int) -> list[Message]:
    return [m for t in stream for m in statements(t.updates, t.lower, t.upper, at_most=at_most)]
