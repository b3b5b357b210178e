"""Nobody gets more than a share."""

from __future__ import annotations

import pytest

from reclock.errors import Rejected
from reclock.server.http import limits
from reclock.server.http.limits import BURST, RATE, Rates


def test_an_address_has_a_burst_and_then_a_rate() -> None:
    now = 0.0
    rates = Rates(lambda: now)
    for _ in range(BURST):
        rates.take("a")
    with pytest.raises(Rejected, match="too many requests") as raised:
        rates.take("a")
    assert raised.value.code == "53400"
    rates.take("b")
    now = 1.0
    for _ in range(RATE):
        rates.take("a")
    with pytest.raises(Rejected):
        rates.take("a")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES", 10)
    rates = Rates()
    for n in range(100):
        rates.take(str(n))
    assert len(rates._left) == 10
