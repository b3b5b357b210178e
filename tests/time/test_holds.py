from __future__ import annotations

import random
from threading import Barrier, Thread

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reclock.errors import HoldViolation, InvalidValue
from reclock.ids import HolderId, ObjectId
from reclock.time.antichain import meet_all
from reclock.time.frontier import BEGINNING, CLOSED, Frontier, at
from reclock.time.holds import Hold, HoldRow, Holds
from strategies.times import frontiers

ORDERS, ITEMS, SALES = (ObjectId(name) for name in ("u1", "u2", "u3"))
OBJECTS = (ORDERS, ITEMS, SALES)
SINK, SUBSCRIBE = HolderId("sink/u9"), HolderId("subscribe/4")


def ledger(**sinces: int) -> Holds:
    holds = Holds()
    for name, since in (sinces or {"u1": 0, "u2": 0, "u3": 0}).items():
        holds.track(ObjectId(name), at(since))
    return holds


class Ledger(RuleBasedStateMachine):
    """The ledger against a model: a list of (token, object → frontier)."""

    @initialize(sinces=st.tuples(*[st.integers(0, 8) for _ in OBJECTS]))
    def begin(self, sinces: tuple[int, ...]) -> None:
        self.holds = Holds()
        self.model: dict[Hold, dict[ObjectId, Frontier]] = {}
        self.sinces = {o: at(s) for o, s in zip(OBJECTS, sinces, strict=True)}
        for object_id, since in self.sinces.items():
            self.holds.track(object_id, since)

    @rule(
        objects=st.lists(st.sampled_from(OBJECTS), max_size=4),
        since=st.one_of(st.none(), frontiers()),
        holder=st.sampled_from([SINK, SUBSCRIBE]),
    )
    def acquire(self, objects: list[ObjectId], since: Frontier | None, holder: HolderId) -> None:
        wanted = {o: self.sinces[o] if since is None else since for o in objects}
        if all(not self.sinces[o].is_closed and self.sinces[o].precedes(wanted[o]) for o in wanted):
            hold = self.holds.acquire(holder, objects, since)
            self.model[hold] = {o: f for o, f in wanted.items() if not f.is_closed}
        else:
            before = self.holds.rows()
            with pytest.raises(HoldViolation, match="cannot hold"):
                self.holds.acquire(holder, objects, since)
            assert self.holds.rows() == before

    @rule(data=st.data(), to=frontiers())
    def downgrade(self, data: st.DataObject, to: Frontier) -> None:
        if not self.model:
            return
        hold = data.draw(st.sampled_from(list(self.model)))
        held = self.model[hold]
        if held and all(f.precedes(to) for f in held.values()):
            hold.downgrade(to)
            self.model[hold] = {} if to.is_closed else dict.fromkeys(held, to)
        else:
            with pytest.raises(HoldViolation, match="cannot downgrade"):
                hold.downgrade(to)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.model:
            hold = data.draw(st.sampled_from(list(self.model)))
            hold.release()
            self.model[hold] = {}

    @rule(object_id=st.sampled_from(OBJECTS), to=frontiers())
    def advance(self, object_id: ObjectId, to: Frontier) -> None:
        before = self.sinces[object_id]
        permitted = self.permitted(object_id)
        after = self.holds.advance(object_id, to)
        assert before.precedes(after)
        assert after.precedes(permitted)
        assert after == before.join(to.meet(permitted))
        self.sinces[object_id] = after

    def permitted(self, object_id: ObjectId) -> Frontier:
        return meet_all(held[object_id] for held in self.model.values() if object_id in held)

    @invariant()
    def since_never_passes_a_hold(self) -> None:
        for object_id in OBJECTS:
            assert self.holds.since(object_id) == self.sinces[object_id]
            assert self.holds.permitted(object_id) == self.permitted(object_id)
            assert self.sinces[object_id].precedes(self.permitted(object_id))
        for hold, held in self.model.items():
            assert hold.sinces == held
            assert hold.released == (not held)

    @invariant()
    def the_rows_are_what_is_held(self) -> None:
        rows = [HoldRow(o, h.holder, f) for h, held in self.model.items() for o, f in held.items()]
        assert sorted(map(str, self.holds.rows())) == sorted(map(str, rows))


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=25)


def test_the_slowest_of_two_sinks_decides() -> None:
    holds = ledger()
    slow, fast = holds.acquire(SINK, [ORDERS], at(5)), holds.acquire(SUBSCRIBE, [ORDERS], at(9))
    assert holds.advance(ORDERS, at(20)) == at(5)
    fast.downgrade(at(15))
    assert holds.advance(ORDERS, at(20)) == at(5)
    slow.release()
    assert holds.advance(ORDERS, at(20)) == at(15)
    fast.release()
    assert holds.advance(ORDERS, at(20)) == at(20)


def test_a_downgrade_that_goes_back_names_both_frontiers_and_moves_nothing() -> None:
    holds = ledger(u1=3, u2=8)
    hold = holds.acquire(SINK, [ORDERS, ITEMS])
    with pytest.raises(HoldViolation) as caught:
        hold.downgrade(at(5))
    assert caught.value.message == "sink/u9 cannot downgrade its hold from {8} to {5}"
    assert "u2" in (caught.value.detail or "")
    assert caught.value.code == "55000"
    assert hold.sinces == {ORDERS: at(3), ITEMS: at(8)}
    hold.downgrade(at(8))
    assert hold.sinces == {ORDERS: at(8), ITEMS: at(8)}


def test_several_objects_are_held_together_or_not_at_all() -> None:
    holds = ledger(u1=3, u2=8)
    with pytest.raises(HoldViolation) as caught:
        holds.acquire(SINK, [ORDERS, ITEMS], at(5))
    assert caught.value.message == "sink/u9 cannot hold {5}: it is no longer kept"
    assert caught.value.detail == "u2 is kept from {8} on"
    assert holds.rows() == ()
    assert holds.permitted(ORDERS) == CLOSED


def test_a_token_releases_itself_at_the_end_of_its_block_however_it_ends() -> None:
    holds = ledger()
    hold = holds.acquire(SINK, [ORDERS])
    assert holds.rows() == (HoldRow(ORDERS, SINK, BEGINNING),)
    assert repr(hold) == "Hold(sink/u9: u1 at {0})"
    with pytest.raises(RuntimeError), hold:
        raise RuntimeError
    assert holds.rows() == ()
    assert hold.released
    hold.release()
    assert repr(hold) == "Hold(sink/u9: released)"
    with pytest.raises(HoldViolation, match="its hold is released"):
        hold.downgrade(at(5))


def test_dropping_waits_for_the_last_hold() -> None:
    holds = ledger()
    hold = holds.acquire(SUBSCRIBE, [ORDERS], at(4))
    assert holds.advance(ORDERS, CLOSED) == at(4)
    with pytest.raises(HoldViolation, match="u1 is still held") as caught:
        holds.forget(ORDERS)
    assert caught.value.detail == "held by subscribe/4"
    hold.downgrade(CLOSED)
    assert hold.released
    assert holds.advance(ORDERS, CLOSED) == CLOSED
    with pytest.raises(HoldViolation, match="cannot hold what is dropped"):
        holds.acquire(SINK, [ORDERS])
    holds.forget(ORDERS)
    with pytest.raises(InvalidValue, match="u1 is not tracked"):
        holds.since(ORDERS)


def test_unknown_and_doubly_tracked_objects_are_refused() -> None:
    holds = ledger()
    for call in (holds.forget, holds.since, holds.permitted):
        with pytest.raises(InvalidValue, match="u7 is not tracked"):
            call(ObjectId("u7"))
    with pytest.raises(InvalidValue, match="u7 is not tracked"):
        holds.acquire(SINK, [ORDERS, ObjectId("u7")])
    assert holds.rows() == ()
    with pytest.raises(InvalidValue, match="tracked already"):
        holds.track(ORDERS)


def test_threads_that_acquire_downgrade_and_release_leave_nothing_and_lose_nothing() -> None:
    holds = ledger()
    start = Barrier(5)
    broken: list[object] = []

    def reader(seed: int) -> None:
        choice = random.Random(seed)
        start.wait()
        for _ in range(300):
            objects = choice.sample(OBJECTS, k=2)
            with holds.acquire(HolderId(f"transaction/{seed}"), objects) as hold:
                later = max(f.element() for f in hold.sinces.values()) + choice.randrange(3)
                hold.downgrade(at(later))
                broken.extend(o for o in objects if holds.since(o).element() > later)

    def compactor() -> None:
        start.wait()
        for t in range(300):
            for object_id in OBJECTS:
                holds.advance(object_id, at(t))

    threads = [Thread(target=reader, args=(seed,)) for seed in range(4)]
    threads.append(Thread(target=compactor))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert broken == []
    assert holds.rows() == ()
    assert [holds.advance(o, at(1_000)) for o in OBJECTS] == [at(1_000)] * 3


def test_a_hold_can_be_released_from_several_threads_at_once() -> None:
    holds = ledger()
    kept = holds.acquire(SUBSCRIBE, [ORDERS], at(2))
    for _ in range(50):
        hold = holds.acquire(SINK, [ORDERS], at(2))
        threads = [Thread(target=hold.release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert holds.permitted(ORDERS) == at(2)
    kept.release()
    assert holds.permitted(ORDERS) == CLOSED
