"""A bank in PostgreSQL, followed live, through a kill -9.

Run it with ``python -m examples.postgres``: it starts a real PostgreSQL (from a wheel of the
extra ``dev``), moves money between accounts, and follows both tables in another process, which it
kills. At every time that was ever bound, before the kill and after it, the balances are those that
the transfers of that time make: the view ``wrong`` has no rows.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from reclock.testing.postgres import running_postgres

ACCOUNTS = 20
TRANSFERS = 200
"""In each of two lives."""

PATIENCE = 600.0
TABLES = f"""
CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL);
CREATE TABLE transfers (id SERIAL PRIMARY KEY, src INT, dst INT, amount INT);
INSERT INTO accounts SELECT i, 100 FROM generate_series(1, {ACCOUNTS}) i;
CREATE PUBLICATION bank FOR TABLE accounts, transfers;
"""
TRANSFER = """
BEGIN;
UPDATE accounts SET balance = balance - 1 WHERE id = %s;
UPDATE accounts SET balance = balance + 1 WHERE id = %s;
INSERT INTO transfers (src, dst, amount) VALUES (%s, %s, 1);
COMMIT
"""
FOLLOWER = """
import sys, time
import reclock

state, connection = sys.argv[1:]
with reclock.open(state) as db:
    db.execute(f\"\"\"
      CREATE SOURCE IF NOT EXISTS bank FROM POSTGRES CONNECTION '{connection}'
        PUBLICATION 'bank' FOR TABLES (accounts, public.transfers AS moves)
        WITH (RETAIN HISTORY FOR '1 h')\"\"\")
    db.execute(\"\"\"
      CREATE MATERIALIZED VIEW IF NOT EXISTS wrong WITH (RETAIN HISTORY FOR '1 h') AS
        SELECT a.id, a.balance FROM accounts a LEFT JOIN (
          SELECT id, sum(amount) AS amount FROM (
            SELECT src AS id, -amount AS amount FROM moves
            UNION ALL SELECT dst, amount FROM moves) m GROUP BY id) m ON m.id = a.id
        WHERE a.balance <> 100 + coalesce(m.amount, 0)\"\"\")
    times, seen = 'SELECT timestamp FROM reclock.bindings WHERE "offset" > 0', set()
    while True:
        for (at,) in db.execute(times).rows:
            if at not in seen:
                assert db.execute(f"SELECT * FROM wrong AS OF {at}").rows == [], at
                seen.add(at)
        ((count, lsn),) = db.execute("SELECT (SELECT count(*) FROM moves), lsn FROM bank").rows
        print(count, lsn, len(seen), flush=True)
        time.sleep(0.2)
"""


def run(state: Path) -> int:
    """Follow, kill, follow again, and compare; return at how many times."""
    times = 0
    with running_postgres({"wal_level": "logical"}) as url:
        bank = psycopg.connect(url, autocommit=True)
        cursor = psycopg.ClientCursor(bank)
        cursor.execute(TABLES)
        connection = f"host={url.split('host=')[1]} user=postgres dbname=postgres"
        moved = 0
        for life in (1, 2):
            command = [sys.executable, "-c", FOLLOWER, str(state), connection]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
                assert follower.stdout is not None
                deadline = time.monotonic() + PATIENCE
                seen = -1
                while seen < TRANSFERS * life and time.monotonic() < deadline:
                    for _ in range(20 if moved < TRANSFERS * life else 0):
                        one, other = random.sample(range(1, ACCOUNTS + 1), 2)
                        cursor.execute(TRANSFER, (one, other, one, other))
                        moved += 1
                    line = follower.stdout.readline()
                    assert line, "the follower has ended"
                    count, lsn, looked = line.split()
                    seen, times = int(count), int(looked)
                    print(f"{seen} of {moved} transfers, at {lsn}; right at {times} times")
                follower.kill()
            assert seen == moved, f"{seen} of {moved} transfers"
            print("killed -9" if life == 1 else "all transfers are there, once")
        cursor.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
        bank.close()
    return times


def main() -> None:
    """Run it in a temporary directory."""
    with tempfile.TemporaryDirectory() as home:
        run(Path(home) / "state")


if __name__ == "__main__":
    main()
