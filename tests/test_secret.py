"""A secret is not shown, wherever it is put."""

from __future__ import annotations

import logging
import pickle
import traceback
from typing import TYPE_CHECKING

from reclock.secret import Secret, scrub

if TYPE_CHECKING:
    import pytest


def test_no_way_of_printing_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("hunter2")
    logging.getLogger("reclock").warning("%s %r %s", secret, secret, [secret])
    shown = [str(secret), repr(secret), f"{secret}", str({1: secret})]
    try:
        raise ValueError(secret)
    except ValueError:
        shown.append(traceback.format_exc())
    assert "hunter2" not in "".join([*shown, caplog.text])


def test_it_is_the_same_after_a_journey() -> None:
    assert pickle.loads(pickle.dumps(Secret("a"))) == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a") != "a"


def test_scrubbing_takes_out_all_of_them() -> None:
    assert scrub("a b a", [Secret("a"), Secret("")]) == "*** b ***"
