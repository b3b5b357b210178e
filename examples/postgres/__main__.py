"""A bank in PostgreSQL, followed live, through a kill -9.

Run it with ``python -m examples.postgres``: it starts a real PostgreSQL (from a wheel of the
extra ``dev``), moves money between accounts, and follows both tables in another process, which it
kills. At every time the balances are those that the transfers of that time make.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time

import psycopg

from reclock.testing.postgres import running_postgres

ACCOUNTS = 20
TABLES = f"""
CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL);
CREATE TABLE transfers (id SERIAL PRIMARY KEY, src INT, dst INT, amount INT);
INSERT INTO accounts SELECT i, 100 FROM generate_series(1, {ACCOUNTS}) i;
CREATE PUBLICATION bank FOR TABLE accounts, transfers;
"""
FOLLOWER = """
import sys, time
import reclock

state, connection = sys.argv[1:]
with reclock.open(state) as db:
    db.execute(f\"\"\"
      CREATE SOURCE IF NOT EXISTS bank FROM POSTGRES CONNECTION '{connection}'
        PUBLICATION 'bank' FOR TABLES (accounts, public.transfers AS moves)\"\"\")
    while True:
        rows = db.execute(
          "SELECT (SELECT sum(balance) FROM accounts), (SELECT count(*) FROM moves), lsn FROM bank"
        ).rows
        print(*rows[0], flush=True)
        time.sleep(0.2)
"""


def main() -> None:
    """Follow, kill, follow again, and compare."""
    with running_postgres({"wal_level": "logical"}) as url, tempfile.TemporaryDirectory() as state:
        bank = psycopg.connect(url, autocommit=True)
        cursor = psycopg.ClientCursor(bank)
        cursor.execute(TABLES)
        connection = f"host={url.split('host=')[1]} user=postgres dbname=postgres"
        moved = 0
        for life in range(2):
            follower = subprocess.Popen(
                [sys.executable, "-c", FOLLOWER, state, connection],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert follower.stdout is not None
            seen = -1
            deadline = time.monotonic() + 600
            while seen < moved + 20 and time.monotonic() < deadline:
                for _ in range(20 if moved < 200 * (life + 1) else 0):
                    one, other = random.sample(range(1, ACCOUNTS + 1), 2)
                    cursor.execute(
                        "BEGIN; UPDATE accounts SET balance = balance - 1 WHERE id = %s;"
                        "UPDATE accounts SET balance = balance + 1 WHERE id = %s;"
                        "INSERT INTO transfers (src, dst, amount) VALUES (%s, %s, 1); COMMIT",
                        (one, other, one, other),
                    )
                    moved += 1
                total, count, lsn = follower.stdout.readline().split()
                seen = int(count)
                print(f"total {total} after {count} transfers, at {lsn}")
                assert int(total) == 100 * ACCOUNTS
                if seen >= moved >= 200 * (life + 1):
                    break
            assert seen == moved, f"{seen} of {moved} transfers"
            follower.kill()
            follower.wait()
            print("killed -9" if life == 0 else "all transfers are there, once")
        cursor.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
        bank.close()


if __name__ == "__main__":
    main()
