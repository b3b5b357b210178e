"""The observer finds every kind of wrong output, and nothing in right output."""

from __future__ import annotations

import json

import pytest

from reclock.demo.bank import BALANCE, LEDGER, TOTAL, Expected, transfers
from reclock.demo.observer import Seen
from reclock.demo.verdict import Verdict

COUNT = 40


def output(count=COUNT, step=10):
    """Return the right messages of so many transfers, some with each timestamp."""
    messages = []
    for first in range(0, count, step):
        at = 1_000 + first
        before, after = Expected.of(first).balances, Expected.of(first + step).balances
        for transfer in transfers(first, first + step):
            body = {"before": None, "after": transfer._asdict()}
            messages.append([LEDGER, None, body, at])
        messages += [
            [BALANCE, {"account": account}, {"account": account, "balance": balance}, at]
            for account, balance in after.items()
            if before.get(account) != balance
        ]
    messages.append([TOTAL, None, {"before": None, "after": {"total": 0}}, 1_000])
    return messages


def judge(messages):
    seen = Seen()
    for topic, key, body, at in messages:
        encoded = None if key is None else json.dumps(key).encode()
        seen.read(topic, encoded, json.dumps(body).encode(), at)
    seen.close()
    return Verdict.of(Expected.of(COUNT), seen, kills=3)


def test_right_output_is_right():
    verdict = judge(output())
    assert verdict.right
    assert verdict.timestamps == 4
    assert str(verdict).startswith("exactly once: 40 transfers")


def place(messages, topic, which=0):
    return [n for n, message in enumerate(messages) if message[0] == topic][which]


def test_a_repeated_transfer_is_a_duplicate():
    messages = output()
    messages.insert(3, messages[place(messages, LEDGER)])
    verdict = judge(messages)
    assert (verdict.duplicates, verdict.right) == (1, False)
    assert "NOT exactly once" in str(verdict)


def test_a_missing_transfer_is_lost():
    messages = output()
    del messages[place(messages, LEDGER, 7)]
    verdict = judge(messages)
    assert (verdict.lost, verdict.right) == (1, False)


def test_a_transfer_nobody_made_does_not_stand_in_for_a_lost_one():
    messages = output()
    messages[place(messages, LEDGER, 7)][2]["after"]["id"] = 999
    assert judge(messages).lost == 1


def test_a_repeated_balance_is_a_duplicate():
    messages = output()
    at = place(messages, BALANCE, 2)
    messages.insert(at, messages[at])
    assert judge(messages).duplicates == 1


def test_a_missing_balance_unbalances_its_timestamp():
    messages = output()
    del messages[place(messages, BALANCE)]
    verdict = judge(messages)
    assert verdict.unbalanced > 0
    assert not verdict.right


@pytest.mark.parametrize("totals", [[], [0, 5, 0]])
def test_a_total_that_ever_was_something_else_is_wrong(totals):
    messages = [m for m in output() if m[0] != TOTAL]
    messages += [[TOTAL, None, {"before": None, "after": {"total": n}}, 1] for n in totals]
    assert not judge(messages).right
