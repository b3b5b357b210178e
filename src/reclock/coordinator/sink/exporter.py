"""One sink at work: what its relation has closed, written once, whole times in order.

``step`` is one transaction of the sink's state machine (``sinks.export``), over the changes of a
published world: only what is durable is written. The committed frontier is in the log and nowhere
else, so it cannot disagree with the data; after a crash, or when nobody knows how a commit ended,
it is read again, with all older producers barred (P4). The state remembers it too, a moment
later: enough to notice a log that lost it. The hold of the sink follows what is remembered: what
may still have to be written is kept, whatever the window (``history``).

Barring others is done in the name of the state's owner, so a new producer is made only by a
process that still is it: one that slept, and whose state has another owner by now, stops.

A sink whose relation has an error waits at that time and says so. A failed transaction is
tried again; one that cannot succeed stops the sink with what to do. Nothing else waits for it.

Tests: tests/coordinator/sink/test_sinks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.coordinator.item import Source
from reclock.coordinator.sink.changes import Changes
from reclock.durable.sink_store import SinkStore
from reclock.errors import Error, Fenced, SinkRegressed, SinkUnavailable
from reclock.failpoints import hit
from reclock.sinks import export
from reclock.sinks.failure import SendFailed, Stop
from reclock.time.frontier import at
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from reclock.coordinator.core import Core
    from reclock.coordinator.item import Sink
    from reclock.coordinator.sink.changes import Reach
    from reclock.coordinator.world import World
    from reclock.sinks.encode.encoder import Encoded, Encoder
    from reclock.sinks.log import Messages, Unfenced
    from reclock.sinks.producer import Target
    from reclock.time.description import Description
    from reclock.time.frontier import Frontier

IDLE_MS: Final = 10_000
"""How often a sink without data writes how far it is."""

REMEMBER_MS: Final = 1_000
"""How often the state is told how far a sink is."""


@dataclass(frozen=True)
class Outlet:
    """Where a sink writes, and how: a new producer or encoder on demand, the topics.

    Making an encoder may ask a schema registry, and fail as that does.
    """

    open: Callable[[], Unfenced]
    encoder: Callable[[], Encoder]
    target: Target


@dataclass(frozen=True)
class Written:
    """Messages, and the bytes of their values."""

    messages: int = 0
    bytes: int = 0


class _Encoded:
    """Messages on their way, which the exporter counts."""

    def __init__(self, encoded: Encoded) -> None:
        self.times = encoded.times
        self.faults = encoded.faults
        self.bytes = 0
        self._encoded = encoded

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        self.bytes = 0
        for chunk in self._encoded.chunks():
            self.bytes += chunk.values.nbytes
            yield chunk


class Exporter:
    """Writes one sink; one thread at a time calls ``step``."""

    def __init__(self, core: Core, sink: Sink, outlet: Outlet) -> None:
        self.sink = sink
        self.written = Written()
        """What this process has committed."""
        self.in_flight = 0
        """How many messages the transaction under way has."""
        self.reached: Timestamp | None = None
        """Everything before it is committed, or there was nothing to commit."""
        self.stall: Error | None = None
        """Why nothing can be written at the moment."""
        self.failure: Error | None = None
        """Why nothing more will be written."""
        self.fault: str | None = None
        """What of the data could not be said in the envelope, last."""
        self.retries = 0
        """How often something had to be tried again."""
        self.last_error: Error | None = None
        """The last thing that went wrong, whether or not it is over."""
        self._core = core
        self._store = SinkStore(core.store)
        self._remembered: tuple[Frontier, int] | None = None
        self._outlet = outlet
        self._changes = Changes(sink.relation, self.as_of, sink.facts["snapshot"])
        self._encoder: Encoder | None = None
        self._machine: export.Exporter | None = None
        self._world: World | None = None
        self._reach: Reach | None = None
        self._encoded: _Encoded | None = None

    @property
    def as_of(self) -> Timestamp:
        """The time the sink begins at."""
        return Timestamp(self.sink.facts["as_of"])

    @property
    def frontier(self) -> Timestamp | None:
        """Everything before it is committed; None: not known."""
        machine = self._machine
        return None if machine is None else machine.frontier.element()

    def step(self) -> bool:
        """Write the next whole times; return whether there may be more at once."""
        if self.failure is not None:
            return False
        stall = None
        more = False
        try:
            more = self._step()
        except Stop as stop:
            self.failure = stop.error
        except SendFailed as failed:
            stall = failed.error
        except (SinkRegressed, Fenced) as error:
            self.failure = error
        except Error as error:
            stall = error
        except Exception as error:  # the machine is lost, as after a crash
            stall = SinkUnavailable(f"a sink cannot be written: {error}")
        self.stall = stall
        self.retries += stall is not None
        self.last_error = stall or self.failure or self.last_error
        return more

    def close(self) -> None:
        """Give the connection back."""
        if self._machine is not None:
            self._machine.close()

    def _step(self) -> bool:
        machine = self._ready()
        with self._core.reading() as world:
            assert self.sink.timeline is not None
            state = world[self.sink.timeline]
            frontier = machine.frontier.element()
            if frontier >= state.upper:
                self._let_go(machine)
                return False
            reach = self._changes.reach(state, frontier, state.upper)
            if reach.failure is not None:
                raise reach.failure
            self._world, self._reach = world, reach
            try:
                done = machine.advance(at(reach.upper), self._core.clock.now_ms())
            finally:
                self._world, self.in_flight = None, 0
            if done.messages and self._encoded is not None:
                known, new = self.written, self._encoded.bytes
                self.written = Written(known.messages + done.messages, known.bytes + new)
            if done.faults:
                self.fault = "; ".join(f"{f.message} at {f.time}" for f in done.faults[:3])
            self._let_go(machine)
            committed = machine.frontier.element()
            self.reached = committed if committed > frontier else reach.upper
            return frontier < committed < state.upper

    def _ready(self) -> export.Exporter:
        """Return the state machine, with the only producer of the sink."""
        if self._encoder is None:
            self._encoder = self._outlet.encoder()
        if self._machine is None:
            plan = export.Plan(
                self._outlet.target, self, self._changed, self._positions,
                idle_ms=IDLE_MS, writer=self.sink.facts.get("writer", ""),
            )  # fmt: skip
            known = self._store.known(self.sink.id)
            self._core.store.check_owner()
            machine = export.Exporter.resume(plan, self._outlet.open(), at(self.as_of), known)
            self._machine = machine
            self._check(machine.frontier.element())
            self._let_go(machine)
        elif self._machine.is_lost:
            self._core.store.check_owner()
            self._machine.renew(self._outlet.open())
        return self._machine

    def _check(self, frontier: Timestamp) -> None:
        """Refuse to go on from where this database has never been."""
        assert self.sink.timeline is not None
        upper = self._core.world[self.sink.timeline].upper
        if not self.as_of <= frontier <= upper:
            message = f'the progress of sink "{self.sink.name}" is not of this database'
            detail = (
                f"the log says that all before {frontier} is written; the sink began at "
                f"{self.as_of}, and times before {upper} are complete here"
            )
            hint = "open the state that wrote it, or drop the sink and create it with another topic"
            raise SinkRegressed(message, detail=detail, hint=hint)

    def _let_go(self, machine: export.Exporter) -> None:
        """Remember what is committed, now and then, and hold no more than what is not."""
        frontier, now = machine.frontier, self._core.clock.now_ms()
        if frontier.element() <= self.as_of:
            return
        if self._remembered is not None:
            known, then = self._remembered
            if known == frontier or 0 <= now - then < REMEMBER_MS:
                return
        hit("sink.hold.before")
        self._store.advance(self.sink.id, frontier)
        self._remembered = frontier, now
        self._core.history.sink_hold(self.sink.id).downgrade(at(frontier.element().back()))

    def encode(self, updates: pa.RecordBatch, description: Description[Timestamp]) -> _Encoded:
        """Encode what the state machine is about to send, and note how much that is."""
        assert self._encoder is not None
        self._encoded = _Encoded(self._encoder.encode(updates, description))
        self.in_flight = sum(count for _, count in self._encoded.times)
        return self._encoded

    def _changed(self, lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
        """Return the changes that the state machine asks for."""
        assert self._world is not None
        assert self._reach is not None
        assert self.sink.timeline is not None
        assert upper == at(self._reach.upper)
        state = self._world[self.sink.timeline]
        return self._changes.of(state, lower.element(), self._reach)

    def _positions(self, frontier: Frontier) -> Mapping[str, Any]:
        """Return where each source of the relation was just before a frontier."""
        assert self._world is not None
        assert self.sink.timeline is not None
        time = frontier.element().back()
        bindings = self._world[self.sink.timeline].bindings
        catalog = self._world.catalog
        found = {}
        for item in sorted(catalog.inputs(self.sink.relation) | {self.sink.relation}):
            source = catalog[item]
            if isinstance(source, Source):
                remap = bindings[item].remap
                last = [b.frontier for b in remap.bindings if b.time <= time]
                reached = offsets_of(last[-1] if last else remap.origin)
                found[source.name] = {str(part): offset for part, offset in reached.items()}
        return found
