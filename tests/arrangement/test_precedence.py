"""A merge waits for a tick, and not for ever."""

from __future__ import annotations

import threading

import pytest

from reclock.arrangement import precedence
from reclock.arrangement.precedence import Precedence


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


def test_an_error_lets_the_others_go_on() -> None:
    who = Precedence()
    with pytest.raises(RuntimeError), who.going_first():
        raise RuntimeError
    assert list(who.let_pass([])) == []
