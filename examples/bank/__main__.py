"""A number that is never wrong: the total of all accounts, at every timestamp.

Run it with ``python -m examples.bank``. Transfers are made by a generator; views add up what each
account gained and lost. Money is only moved, so the total is 0 whenever one looks: between any two
transfers of a batch it would not be, and a system that shows its views at unlike times shows that.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import reclock

TIMES = 10

PIPELINE = """
ALTER SYSTEM SET timestamp_interval = '100ms';
ALTER SYSTEM SET logical_compaction_window = '10 min';
CREATE SOURCE transfers FROM LOAD GENERATOR BANK (SEED 3, ACCOUNTS 20, EVENTS PER TICK 50);
CREATE MATERIALIZED VIEW credits AS
  SELECT to_account AS account, sum(amount) AS amount FROM transfers GROUP BY to_account;
CREATE MATERIALIZED VIEW debits AS
  SELECT from_account AS account, sum(amount) AS amount FROM transfers GROUP BY from_account;
CREATE MATERIALIZED VIEW balance AS
  SELECT c.account, c.amount - d.amount AS balance
  FROM credits c JOIN debits d ON c.account = d.account;
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total, count(*) AS accounts FROM balance;
"""


def run(state: Path) -> int:
    """Keep the views for a while, and look at every timestamp; return how many there were."""
    with reclock.open(state) as db:
        db.execute(PIPELINE)
        while db.execute("SELECT accounts FROM total").rows != [(20,)]:
            time.sleep(0.1)  # until each account has given and taken
        first = db.execute("SELECT total FROM total").timestamp
        bound = "SELECT timestamp FROM reclock.bindings WHERE source = 'transfers'"
        while sum(at >= first for (at,) in db.execute(bound).rows) <= TIMES:
            time.sleep(0.1)
        last = db.execute("SELECT total FROM total").timestamp
        changes = list(db.subscribe(f"SUBSCRIBE TO total AS OF {first} UP TO {last}"))
        for change in changes:
            print(f"  at {change.timestamp}: total {change.row}, {change.diff:+d}")
        looked = [at for (at,) in db.execute(bound).rows if first <= at < last]
        for at in looked:
            assert db.execute(f"SELECT total FROM total AS OF {at}").rows == [(0,)], at
        print(f"the total was 0 at each of {len(looked)} timestamps")
        return len(looked)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        run(Path(home) / "state")
