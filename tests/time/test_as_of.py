from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reclock.errors import CompactedPastResume, Unreadable
from reclock.ids import HolderId, ObjectId
from reclock.time.as_of import Output, choose_as_of
from reclock.time.frontier import BEGINNING, CLOSED, Bounds, Frontier, at
from reclock.time.holds import Holds
from reclock.time.policy import Policy
from reclock.time.timestamp import Timestamp
from strategies.times import frontiers, inputs

END = 40

outputs = st.lists(frontiers(), max_size=3).map(
    lambda uppers: tuple(Output(f"out{i}", upper) for i, upper in enumerate(uppers))
)


def allowed(reads: tuple[Bounds, ...], writes: tuple[Output, ...]) -> list[int]:
    """The hard constraints, by definition."""
    return [
        t
        for t in range(END)
        if all(b.kept_at(Timestamp(t)) for b in reads)
        and all(o.upper in (BEGINNING, CLOSED) or t <= o.upper.element() - 1 for o in writes)
    ]


@given(inputs(), outputs)
def test_it_is_the_latest_allowed_time_complete_in_all_inputs(
    reads: tuple[Bounds, ...], writes: tuple[Output, ...]
) -> None:
    if writes and all(o.upper.is_closed for o in writes):
        assert choose_as_of(reads, writes) == CLOSED
        return
    candidates = allowed(reads, writes)
    if not candidates:
        with pytest.raises(CompactedPastResume):
            choose_as_of(reads, writes)
        return
    chosen = choose_as_of(reads, writes).element()
    assert chosen in candidates
    bounded = [b.upper for b in reads] + [o.upper for o in writes if o.upper != BEGINNING]
    ready = [t for t in candidates if all(b.complete_at(Timestamp(t)) for b in reads)]
    if all(upper.is_closed for upper in bounded):
        assert chosen == min(candidates)
    else:
        assert chosen == (max(ready) if ready else min(candidates))


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 20))
def test_a_resumed_output_starts_exactly_before_its_upper(
    since: int, upper: int, further: int
) -> None:
    source = Bounds("orders", at(since), at(upper + further))
    if since <= upper - 1:
        assert choose_as_of([source], [Output("sink", at(upper))]) == at(upper - 1)
    else:
        with pytest.raises(CompactedPastResume):
            choose_as_of([source], [Output("sink", at(upper))])


def test_the_error_names_input_since_and_needed_time() -> None:
    reads = [Bounds("orders", at(100), at(150)), Bounds("items", at(10), at(150))]
    with pytest.raises(CompactedPastResume) as caught:
        choose_as_of(reads, [Output("view", at(140)), Output("sink", at(80))])
    assert caught.value.message == "sink cannot resume from 79: its inputs have forgotten it"
    assert caught.value.detail == "orders has since {100}, the needed time is 79"
    assert "sink" in (caught.value.hint or "")
    assert caught.value.code == "55000"


def test_a_dropped_input_cannot_start_anything() -> None:
    gone = Bounds("orders", CLOSED, at(9))
    with pytest.raises(Unreadable, match="orders cannot be read any more"):
        choose_as_of([gone], [Output("new", BEGINNING)])
    with pytest.raises(CompactedPastResume):
        choose_as_of([gone], [Output("sink", at(5)), Output("done", CLOSED)])
    with pytest.raises(Unreadable):
        choose_as_of([gone], [Output("new", BEGINNING), Output("done", CLOSED)])


INPUTS = (ObjectId("u1"), ObjectId("u2"))
WRITES = ("view", "sink")


class Restarts(RuleBasedStateMachine):
    """The proof in the header, as a simulation: holds kept, so no restart fails.

    A tiny engine. Sources advance with changes of a number; a dataflow adds them up into
    two outputs; compaction folds what the holds let go; a crash loses whatever is in
    memory. Each output's change log must add up to the truth at every time it covers.
    """

    @initialize(window=st.integers(0, 6))
    def begin(self, window: int) -> None:
        self.policy = Policy(window)
        self.truth: dict[int, int] = {}
        self.stored: dict[ObjectId, dict[int, int]] = {o: {} for o in INPUTS}
        self.uppers = dict.fromkeys(INPUTS, 0)
        self.sinces = dict.fromkeys(INPUTS, BEGINNING)
        self.logs: dict[str, list[tuple[int, int]]] = {name: [] for name in WRITES}
        self.written = dict.fromkeys(WRITES, 0)
        self.start_process()

    def start_process(self) -> None:
        self.holds = Holds()
        for object_id, since in self.sinces.items():
            self.holds.track(object_id, since)
        self.hold = self.holds.acquire(HolderId("dataflow/1"), INPUTS)
        reads = [Bounds(o, self.sinces[o], at(self.uppers[o])) for o in INPUTS]
        as_of = choose_as_of(reads, [Output(n, at(u)) for n, u in self.written.items()])
        self.hold.downgrade(as_of)
        self.as_of = as_of.element()

    def shown(self) -> list[tuple[int, int]]:
        """What the dataflow shows: inputs accumulated at its as-of, then their changes."""
        changes = [change for stored in self.stored.values() for change in stored.items()]
        first = sum(diff for time, diff in changes if time <= self.as_of)
        return [(self.as_of, first), *(c for c in changes if c[0] > self.as_of)]

    @rule(object_id=st.sampled_from(INPUTS), diffs=st.lists(st.integers(1, 99), max_size=4))
    def a_source_advances(self, object_id: ObjectId, diffs: list[int]) -> None:
        for time, diff in enumerate(diffs, start=self.uppers[object_id]):
            self.stored[object_id][time] = diff
            self.truth[time] = self.truth.get(time, 0) + diff
        self.uppers[object_id] += len(diffs)

    @rule(name=st.sampled_from(WRITES), by=st.integers(1, 6))
    def an_output_is_written(self, name: str, by: int) -> None:
        lower = self.written[name]
        upper = min(max(lower, self.as_of) + by, *self.uppers.values())
        if upper > max(lower, self.as_of):
            self.logs[name] += [(t, diff) for t, diff in self.shown() if lower <= t < upper]
            self.written[name] = upper

    @rule()
    def the_hold_follows_what_is_durable(self) -> None:
        durable = min(self.written.values())
        if durable > self.as_of:
            self.hold.downgrade(at(durable - 1))

    @rule(object_id=st.sampled_from(INPUTS))
    def compaction_runs(self, object_id: ObjectId) -> None:
        wanted = self.policy.wanted(self.sinces[object_id], at(self.uppers[object_id]))
        self.sinces[object_id] = self.holds.advance(object_id, wanted)
        since, folded = self.sinces[object_id].element(), dict[int, int]()
        for time, diff in self.stored[object_id].items():
            folded[max(time, since)] = folded.get(max(time, since), 0) + diff
        self.stored[object_id] = folded

    @rule()
    def the_process_crashes_and_restarts(self) -> None:
        self.start_process()

    @invariant()
    def every_change_log_adds_up_to_the_truth(self) -> None:
        for name, log in self.logs.items():
            for now in range(min((t for t, _ in log), default=0), self.written[name]):
                logged = sum(diff for t, diff in log if t <= now)
                assert logged == sum(diff for t, diff in self.truth.items() if t <= now)


TestRestarts = Restarts.TestCase
TestRestarts.settings = settings(max_examples=80, stateful_step_count=40)


def test_without_its_hold_the_same_restart_would_fail() -> None:
    holds = Holds()
    source = ObjectId("u1")
    holds.track(source)
    since: Frontier = holds.advance(source, Policy(1).wanted(BEGINNING, at(50)))
    with pytest.raises(CompactedPastResume):
        choose_as_of([Bounds("orders", since, at(50))], [Output("sink", at(20))])
