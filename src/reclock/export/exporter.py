"""One sink at work: what its relation has closed, written once, whole times in order.

``step`` is one transaction of the sink's state machine (``sinks.export``), over the changes of a
published world: only what is durable is written. The committed frontier is in the log and nowhere
else, so it cannot disagree with the data; after a crash, or when the outcome of a commit is
unknown, it is read again, with all older producers barred (P4). The state remembers it too, a
moment later: enough to notice a log that lost it. The hold of the sink follows what is remembered:
what may still have to be written is kept, whatever the window (``history``).

A sink that takes over from another database (``recover``) first waits for its sources, then
writes what the relation has there less what the topic has.

Barring others is done in the name of the state's owner, so a new producer is made only by a
process that still is it: one that slept, and whose state has another owner by now, stops.

What a sink is made of can change (ALTER SINK): each step looks at the sink as it is in its world.

A sink whose relation has an error waits at that time and says so. A failed transaction is
tried again; one that cannot succeed stops the sink with what to do. Nothing else waits for it.

Tests: tests/export/test_sinks.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from reclock.catalog.item import RelationItem, Sink
from reclock.durable.sink_store import SinkStore
from reclock.engine.catalog_change import change_catalog
from reclock.errors import Error, Fenced, SinkRegressed, SinkUnavailable
from reclock.export.alter import settled
from reclock.export.changes import Changes
from reclock.export.recover import Legacy, topic_of
from reclock.export.work import Counted, Current, Work
from reclock.failpoints import hit
from reclock.sinks import export
from reclock.sinks.failure import SendFailed, Stop
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from reclock.engine.core import Core
    from reclock.engine.world import World
    from reclock.sinks.consistency import FrontierRecord
    from reclock.sinks.encode.encoder import Encoder
    from reclock.sinks.encode.shadow import Contents
    from reclock.sinks.gather import Limits
    from reclock.sinks.log import Unfenced
    from reclock.sinks.producer import Target
    from reclock.time.description import Description
    from reclock.time.frontier import Frontier
    from reclock.time.timestamp import Timestamp

IDLE_MS: Final = 10_000
"""How often a sink without data writes how far it is."""

REMEMBER_MS: Final = 1_000
"""How often the state is told how far a sink is."""


@dataclass(frozen=True)
class Outlet:
    """Where a sink writes, and how: a new producer on demand, the topics."""

    open: Callable[[], Unfenced]
    target: Target
    peek: Callable[[], FrontierRecord | None]
    """What the log says without anybody being barred: enough to leave another one alone."""
    limits: Limits
    """What one transaction may have."""


class Making(Protocol):
    """How encoders are made; that may ask a schema registry, and fail as that does."""

    def __call__(self, sink: Sink, relation: RelationItem, contents: Contents, /) -> Encoder:
        """Return the encoder of a sink."""
        ...


@dataclass(frozen=True)
class Written:
    """Messages, the bytes of their values, and the transactions they were in."""

    messages: int = 0
    bytes: int = 0
    transactions: int = 0


class Commit(NamedTuple):
    """A transaction that is committed: when, all times before which are written, and how much."""

    at_ms: int
    frontier: Timestamp
    messages: int
    bytes: int


RECENT: Final = 20
"""So many of the last transactions are remembered, for those who look."""


class Exporter:
    """Writes one sink; one thread at a time calls ``step``."""

    def __init__(self, core: Core, sink: Sink, outlet: Outlet, making: Making) -> None:
        self.sink = sink
        self.written = Written()
        """What this process has committed."""
        self.recent: deque[Commit] = deque(maxlen=RECENT)
        """The last transactions of this process, the newest last."""
        self.target: Final = outlet.target
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
        self.waits_for: str | None = None
        """What must happen before what was taken over can be gone on with."""
        self._core = core
        self._begun = core.world.of(sink).upper
        """Where this process found the state: no later times are written yet."""
        self._store = SinkStore(core.store)
        self._remembered: tuple[Frontier, int] | None = None
        self._outlet = outlet
        self.reached_by = sink.statement
        """What says how it is reached when it connects again."""
        self._making = making
        self._encoder: tuple[Sink, Encoder] | None = None
        self._machine: export.Exporter | None = None
        self._current = Current()
        self._plan = self._planned()
        self._inherited: tuple[Timestamp, pa.RecordBatch] | None = None
        self._encoded: Counted | None = None

    @property
    def as_of(self) -> Timestamp:
        """The time the sink begins at."""
        return self.sink.as_of

    @property
    def frontier(self) -> Timestamp | None:
        """Everything before it is committed, as far as this process knows; None: not known."""
        machine = self._machine
        if machine is not None:
            return machine.frontier.element()
        known = self._store.known(self.sink.id)
        return None if known is None or known.is_closed else known.element()

    @property
    def is_open(self) -> bool:
        """Whether it has asked the log how far it is."""
        return self._machine is not None

    @property
    def is_recovering(self) -> bool:
        """Whether what was taken over is still to be gone on with."""
        return self._machine is not None and self._machine.is_heir

    @property
    def condition(self) -> tuple[str, Error | None]:
        """How the sink is, in one word, and the error that is why, if one is."""
        if (why := self.failure) is not None:
            return "failed", why
        if (why := self.stall) is not None:
            return "stalled", why
        if not self.is_open:
            return "starting", None
        return ("recovering" if self.is_recovering else "running"), None

    def step(self) -> bool:
        """Write the next whole times; return whether there may be more at once."""
        if self.failure is not None:
            return False
        stall = None
        more = False
        try:
            more = self._step()
            self._settle()
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

    def reach(self, sink: Sink, outlet: Outlet) -> None:
        """Connect otherwise from the next time on."""
        self._outlet, self.reached_by = outlet, sink.statement

    def close(self) -> None:
        """Give the connection back."""
        if self._machine is not None:
            self._machine.close()

    def _step(self) -> bool:
        with self._core.reading() as world:
            sink = world.catalog.items.get(self.sink.id)
            if not isinstance(sink, Sink):
                return False
            state = world.of(sink)
            self._make_encoder(sink, world)
            machine = self._ready()
            frontier = lower = machine.frontier.element()
            changes = Changes.of_sink(sink)
            if machine.is_heir:
                if not self._inherit(machine, sink, world):
                    return False
                assert self._inherited is not None
                changes = changes.after(*self._inherited)
                lower = self._inherited[0]
            if lower >= state.upper:
                self._let_go(machine)
                return False
            reach = changes.reach(state, lower, state.upper)
            if reach.failure is not None and reach.upper == lower:
                raise reach.failure
            self._current.work = Work(sink, world, state, changes, reach)
            try:
                done = machine.advance(at(reach.upper), self._core.clock.now_ms())
            finally:
                self._current.work, self.in_flight = None, 0
            if done.messages and self._encoded is not None:
                known, new = self.written, self._encoded.bytes
                self.written = Written(
                    known.messages + done.messages, known.bytes + new, known.transactions + 1
                )
                now, upto = self._core.clock.now_ms(), done.frontier.element()
                self.recent.append(Commit(now, upto, done.messages, new))
            if not machine.is_heir:
                self._inherited = None
            if done.faults:
                self.fault = "; ".join(
                    f"{f.message}: {f.detail}, at {f.time}" for f in done.faults[:3]
                )
            self._let_go(machine)
            committed = machine.frontier.element()
            self.reached = committed if committed > frontier else reach.upper
            if reach.failure is not None and committed == frontier:
                raise reach.failure  # there is nothing to write before it
            return frontier < committed < state.upper

    def _settle(self) -> None:
        """Forget the relations that the sink was made of before, once all of them is written."""
        frontier = self.frontier
        if frontier is None or settled(self._core.world.catalog, self.sink.id, frontier) is None:
            return
        with self._core.quiet(lambda world: world.paces([self.sink])) as world:
            sink = settled(world.catalog, self.sink.id, frontier)
            if sink is not None:
                change_catalog(self._core, [sink])

    def _make_encoder(self, sink: Sink, world: World) -> None:
        """Have the encoder of the sink as it is now."""
        if self._encoder is None or self._encoder[0] is not sink:
            relation = world.catalog[sink.relation]
            assert isinstance(relation, RelationItem)
            self._encoder = sink, self._making(sink, relation, self._current.contents)

    def _ready(self) -> export.Exporter:
        """Return the state machine, with the only producer of the sink."""
        if self._machine is None:
            known = self._store.known(self.sink.id)
            machine = export.Exporter.resume(self._plan, self._opened(), at(self.as_of), known)
            self._machine = machine
            if not machine.is_heir:
                self._check(machine.frontier.element())
            self._let_go(machine)
        elif self._machine.is_lost:
            self._machine.renew(self._opened())
        return self._machine

    def _planned(self) -> export.Plan:
        legacy = Legacy.of(self.sink)
        return export.Plan(
            self._outlet.target, self,
            self._current.changed, self._current.positions,
            limits=self._outlet.limits,
            idle_ms=IDLE_MS,
            writer=self.sink.facts.get("writer", ""),
            sources=self._current.described,
            heir_of=None if legacy is None else legacy.will,
        )  # fmt: skip

    def _opened(self) -> Unfenced:
        """Return a new producer, unless it would fence the legitimate owner."""
        self._core.store.check_owner()
        if (found := self._outlet.peek()) is not None:
            export.check_writer(self._plan, found)
        return self._outlet.open()

    def _inherit(self, machine: export.Exporter, sink: Sink, world: World) -> bool:
        """Find out what the topic has that was taken over; return whether one can go on."""
        if self._inherited is not None:
            return True
        legacy = Legacy.of(sink)
        assert legacy is not None
        assert sink.timeline is not None
        moment = legacy.moment(world[sink.timeline], world.catalog, sink)
        self.waits_for = moment if isinstance(moment, str) else None
        if isinstance(moment, str):
            return False
        relation = world.catalog[sink.relation]
        assert isinstance(relation, RelationItem)
        topic = topic_of(sink, relation)
        self._inherited = (
            moment, topic.contents(machine.records(), machine.frontier.element()),
        )  # fmt: skip
        return True

    def _check(self, frontier: Timestamp) -> None:
        """Refuse to go on from where this state has never been: it is older than its output."""
        if not self.as_of <= frontier <= max(self._begun, self.as_of):
            message = f'the progress of sink "{self.sink.name}" is not of this state'
            detail = (
                f"the log says that all before {frontier} is written; the sink began at "
                f"{self.as_of}, and times before {self._begun} were complete when it was opened"
            )
            hint = "open the state that wrote it, not an older copy; or begin with an empty "
            hint += "directory and recover = true"
            raise SinkRegressed(message, detail=detail, hint=hint)

    def _let_go(self, machine: export.Exporter) -> None:
        """Remember what is committed, now and then, and hold no more than what is not."""
        frontier, now = machine.frontier, self._core.clock.now_ms()
        if machine.is_heir or frontier.element() <= self.as_of:
            return
        if self._remembered is not None:
            known, then = self._remembered
            if known == frontier or 0 <= now - then < REMEMBER_MS:
                return
        hit("sink.hold.before")
        self._store.advance(self.sink.id, frontier)
        self._remembered = frontier, now
        self._core.history.committed(self.sink.id, frontier.element())

    def encode(self, updates: pa.RecordBatch, description: Description[Timestamp]) -> Counted:
        """Encode what the state machine is about to send, and note how much that is."""
        assert self._encoder is not None
        self._encoded = Counted(self._encoder[1].encode(updates, description))
        self.in_flight = sum(count for _, count in self._encoded.times)
        return self._encoded
