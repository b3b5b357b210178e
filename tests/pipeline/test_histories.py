"""Random pipelines against the model.

``RECLOCK_SEED=n`` runs one history again. A history that fails is made smaller, and printed so that
it can be kept in ``KEPT``.
"""

from __future__ import annotations

import json
import os
from itertools import count
from typing import TYPE_CHECKING

import pytest

from reclock.durable import sqlite

from .generate import case_of
from .history import Case, Run
from .shrink import shrunk

if TYPE_CHECKING:
    from pathlib import Path

QUICK = 12
BLOCK = 25
SEEDS = [int(os.environ["RECLOCK_SEED"])] if "RECLOCK_SEED" in os.environ else range(QUICK)
KEPT: list[str] = []
"""Histories that have failed, as they were printed."""


@pytest.fixture(autouse=True)
def _no_power_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes die here, not machines: SQLite need not wait for the disk."""
    settings = [setting.replace("FULL", "OFF") for setting in sqlite._SETTINGS]
    monkeypatch.setattr(sqlite, "_SETTINGS", settings)


def run(case: Case, home: Path) -> None:
    """Run a case; if it fails, find the smallest one that does and say so."""
    attempts = count()

    def failure(smaller: Case) -> Exception | None:
        try:
            Run(smaller, home / str(next(attempts)))()
        except Exception as error:
            return error
        return None

    found = failure(case)
    if found is None:
        return
    small = shrunk(case, lambda c: type(failure(c)) is type(found), patience=80)
    raise AssertionError(f"this history fails:\n{small.text()}") from failure(small)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history(tmp_path, seed):
    run(case_of(seed), tmp_path)


@pytest.mark.parametrize("text", KEPT, ids=range(len(KEPT)))
def test_a_history_that_has_failed(tmp_path, text):
    run(Case(**json.loads(text)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(80))
def test_many_histories(tmp_path, block):
    for seed in range(1_000 + block * BLOCK, 1_000 + (block + 1) * BLOCK):
        run(case_of(seed), tmp_path / str(seed))
