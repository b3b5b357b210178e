"""Sinks of views that change because time passes: the topic has their exact times, once."""

from __future__ import annotations

import json

import pytest

from engines.local_engine import LocalEngine
from reclock.errors import DataflowExpired

SINK = (
    "CREATE SINK s FROM v INTO KAFKA BROKER 'b:1' TOPIC 'out' KEY (id)"
    " FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)"
)


@pytest.fixture
def local(bench):
    """Real operators, which keep what waits for its time."""
    bench.opener.engine = LocalEngine
    bench.crash()
    bench.run("ALTER SYSTEM SET timestamp_interval = '1ms'")
    return bench


def changes(bench) -> list[tuple[int, int, bool]]:
    """Return for each message its time, the id of its row, and whether the row is there."""
    return [(m.time, json.loads(m.key)["id"], m.value is not None) for m in bench.messages()]


@pytest.mark.parametrize("offset", ["0", "3s"])
def test_a_temporal_view_is_written_at_its_exact_times_across_restarts(local, offset):
    """Idle or not, whatever the ticks are, and whether or not what is to come is stored."""
    local.run(f"ALTER SYSTEM SET compute_replica_expiration_offset = '{offset}'")
    local.crash()
    local.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, b bigint, e bigint)",
        "CREATE MATERIALIZED VIEW v AS SELECT id, b FROM t WHERE mz_now() BETWEEN b AND e",
        SINK,
    )
    local.run(
        "INSERT INTO t VALUES (1, 1500, 2499), (2, 1501, 5003), (3, 2500, 7000),"
        " (4, 2500, 90000), (5, 3000, 2000), (6, NULL, 4000)"
    )
    local.tick(1, 250)
    local.crash()  # before anything is due
    local.tick(1, 1_300)  # three come and one goes, between two ticks
    local.crash()
    local.run("DELETE FROM t WHERE id = 3")
    local.tick(3, 1_000)
    local.crash()  # what is due now was pending for two processes
    local.tick(1, 60_000)
    local.tick(1, 60_000)
    found = [(m.time, json.loads(m.key)["id"], m.value is not None) for m in local.messages()]
    deleted = [time for time, row, there in found if row == 3 and not there]
    assert len(deleted) == 1
    assert sorted(found) == sorted([
        (1_500, 1, True), (2_500, 1, False), (1_501, 2, True), (5_004, 2, False),
        (2_500, 3, True), (deleted[0], 3, False), (2_500, 4, True), (90_001, 4, False),
    ])  # fmt: skip
    assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)
    assert 2_550 <= deleted[0] < 2_700


def test_a_scheduled_view_is_written_at_its_refreshes_across_restarts(local):
    local.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, b bigint)",
        "CREATE MATERIALIZED VIEW v WITH (REFRESH EVERY '2s' ALIGNED TO 0) AS SELECT * FROM t",
        SINK,
    )
    local.run("INSERT INTO t VALUES (1, 1)")
    local.tick(1, 500)
    assert local.messages() == []  # not refreshed yet: it waits, and says why
    assert "has not been refreshed yet" in str(local.status("detail"))
    local.run("INSERT INTO t VALUES (2, 1)")
    local.crash()
    local.tick(1, 1_000)
    local.run("UPDATE t SET b = 5 WHERE id = 1", "UPDATE t SET b = 6 WHERE id = 1")
    local.run("DELETE FROM t WHERE id = 2")
    local.crash()
    local.tick(3, 1_000)
    found = [
        (m.time, json.loads(m.key)["id"], m.value and json.loads(m.value)["b"])
        for m in local.messages()
    ]
    assert sorted(found, key=repr) == sorted(
        [(2_000, 1, 1), (2_000, 2, 1), (4_000, 1, 6), (4_000, 2, None)], key=repr
    )


def test_no_sink_writes_past_the_expiration(local):
    """The process stops instead; the next one goes on as if there had been none."""
    for name, value in (("compute_replica_expiration_offset", "3s"), ("expiration_renewal", "off")):
        local.run(f"ALTER SYSTEM SET {name} = '{value}'")
    local.crash()
    local.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, e bigint)",
        "CREATE MATERIALIZED VIEW v AS SELECT id, e FROM t WHERE mz_now() < e",
        SINK,
        "INSERT INTO t VALUES (1, 3000), (2, 9000)",
    )
    followed = local.db.subscribe("SUBSCRIBE TO v WITH (PROGRESS, SNAPSHOT = false)")
    local.tick(1, 2_500)
    for _ in range(2):
        with pytest.raises(DataflowExpired, match="materialized view v expired at 4000"):
            local.tick(1, 10_000)
        local.run("SELECT * FROM v AS OF 3400")
    assert int(str(local.status("frontier"))) <= 4_000
    seen = followed.fetch(timeout=0)
    assert max(int(update.timestamp) for update in seen) <= 4_000
    assert [change for change in changes(local) if change[0] >= 3_000] == [(3_000, 1, False)]
    local.crash()
    local.tick(1, 1_000)
    assert changes(local)[-1] == (9_000, 2, False)
    assert len(changes(local)) == 4
