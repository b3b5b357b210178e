"""A merge waits for a tick, and not for ever."""

from __future__ import annotations

import threading

import pytest

from reclock.arrangement import precedence
from reclock.arrangement.precedence import Precedence, Unhurried


def consumed(source: Precedence, out: list[int]) -> threading.Thread:
    thread = threading.Thread(target=lambda: out.extend(source.let_pass(range(3))))
    thread.start()
    return thread


def test_nobody_waits_for_nobody() -> None:
    assert list(Precedence().let_pass(range(3))) == [0, 1, 2]


def test_the_next_item_is_made_when_nobody_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE", 60.0)
    who, out = Precedence(), list[int]()
    with who.going_first():
        with who.going_first():
            thread = consumed(who, out)
        thread.join(0.05)
        assert thread.is_alive()
        assert out == []
    thread.join(60)
    assert out == [0, 1, 2]


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE", 0.001)
    who = Precedence()
    with who.going_first():
        assert list(who.let_pass(range(3))) == [0, 1, 2]


def test_one_who_waits_goes_on_when_the_tick_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE", 60.0)
    who = Precedence()
    who.wait()  # for nothing
    with who.going_first():
        thread = threading.Thread(target=who.wait)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()


def test_an_error_lets_the_others_go_on() -> None:
    who = Precedence()
    with pytest.raises(RuntimeError), who.going_first():
        raise RuntimeError
    assert list(who.let_pass([])) == []


def test_who_is_not_in_a_hurry_rests_in_proportion_to_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, rests = [0.0], list[float]()
    slow = Unhurried(Precedence())
    monkeypatch.setattr(precedence, "thread_time", lambda: clock[0])
    monkeypatch.setattr(slow._hurried, "wait", lambda timeout: rests.append(timeout) or False)

    def items() -> list[int]:
        found = []
        for item in slow.pieces(range(3)):
            clock[0] += 0.25 * (item + 1)
            found.append(item)
        return found

    assert items() == [0, 1, 2]
    assert rests == [precedence.REST * 0.25 * n for n in (1, 2, 3)]


def test_who_hurries_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "REST", 10**6)
    slow, begun, out = Unhurried(Precedence()), threading.Event(), list[int]()

    def work() -> None:
        for item in slow.pieces(range(3)):
            sum(range(200_000))  # some work, after which it would rest for days
            out.append(item)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    slow.hurry()
    thread.join(60)
    assert out == [0, 1, 2]


def test_it_lets_others_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE", 60.0)
    who, out = Precedence(), list[int]()
    with who.going_first():
        thread = threading.Thread(target=lambda: out.extend(Unhurried(who).pieces(range(2))))
        thread.start()
        thread.join(0.05)
        assert out == []
    thread.join(60)
    assert out == [0, 1]
