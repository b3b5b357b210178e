"""Random pipelines, compared at every time with a model that knows nothing of the product.

``RECLOCK_SEED=n`` runs a short history again. A history that fails is made smaller, and printed so
that it can be kept in ``KEPT``.
"""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

import pytest

from reclock.durable import sqlite

from ..shards import turn  # noqa: TID252 - tests are no package
from .generate import case_of
from .history import Case, Run
from .shrink import shrunk

QUICK, SHORT = 24, 12
"""Histories in every run, and how much happens in each."""
TURNS = 4
BLOCKS, BLOCK = 80, 25
ASKED = os.environ.get("RECLOCK_SEED")
FIRST = turn(Path(__file__).parents[2]) % TURNS * QUICK
SEEDS = [int(ASKED)] if ASKED else range(FIRST, FIRST + QUICK)
"""Other ones with each commit, of those that are known to be right: raise ``TURNS``."""
KEPT = [
    # Repetitions of Debezium, with the offset included.
    '{"feeds": [{"kind": "topic", "on_error": "report", "envelope": "debezium", "partitions": 1, '
    '"format": "json", "positions": "file", "include": ["OFFSET"]}], "views": [], "actions": '
    '[["send", 2082581261], ["send", 787209476]]}',
    # A view that waits for two sources, of which one begins at a time that others were moved to.
    '{"feeds": [{"kind": "stated", "via": "file", "partitions": 3}, {"kind": "stated", "via": '
    '"topic", "partitions": 1}], "views": [["joined", 1, 0]], "actions": [["send", 442620898], '
    '["tick", 806899909], ["send", 418461138]], "settings": {"logical_compaction_window": "1h"}}',
    # A view is followed while it waits for its sources: it begins where they do, not at 0.
    '{"feeds": [{"kind": "stated", "before": 0, "epoch": true, "via": "topic", "partitions": 2}, '
    '{"kind": "topic", "before": 1, "options": ["max_rows_per_tick = 2", "timestamp_interval = '
    '\'3s\'", "retain_history = \'9s\'"], "bad": 0.02, "on_error": "skip", "envelope": '
    '"upsert", "partitions": 3, "format": "json", "include": ["TIMESTAMP"]}], "views": [["joined", '
    '0, 1]], "actions": [["send", 258261650], ["tick", 1534612739], ["fail", 1479111190], '
    '["follow", 723432211], ["follow", 1888576362], ["send", 1483548383]], "settings": '
    '{"logical_compaction_window": "1h"}}',
    # A view that has no complete time yet: the model asked a table for the time before the first.
    '{"feeds": [{"kind": "using", "format": "json", "envelope": "none", "partitions": 3, '
    '"options": [], "bad": 0}, {"kind": "table", "keyed": false, '
    '"options": ["timeline = \'tl\'"]}], "views": [["joined", 1, 0]], '
    '"actions": [["jump", 780260973]], "settings": {"logical_compaction_window": "1ms"}}',
    # A view is followed from before it can be read: the model knew of no error so early.
    '{"feeds": [{"kind": "file", "before": 4, "options": ["max_rows_per_tick = 1"], "bad": 0.1, '
    '"on_error": "report", "format": "csv"}], "views": [["valid", 0]], "actions": [["tick", '
    '804256299], ["follow", 595643141]], "settings": {"logical_compaction_window": "1h"}}',
]
"""Histories that have failed, as they were printed."""


@pytest.fixture(autouse=True)
def _small_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records are read in several pieces."""
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    monkeypatch.setattr("reclock.engine.source_bindings.SLACK", 2)


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
    run(case_of(seed, SHORT), tmp_path)


@pytest.mark.parametrize("text", KEPT, ids=range(len(KEPT)))
def test_a_history_that_has_failed(tmp_path, text):
    run(Case(**json.loads(text)), tmp_path)


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_many_histories(tmp_path, block):
    for seed in range(1_000 + block * BLOCK, 1_000 + (block + 1) * BLOCK):
        run(case_of(seed), tmp_path / str(seed))
