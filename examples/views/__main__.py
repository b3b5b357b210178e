"""Views that are right at every timestamp: tables, a join, an aggregate, a view on a view.

Run it with ``python -m examples.views``: it makes a database in a temporary directory,
changes rows, and shows the views after every change, an error that comes and goes with its
row, and the same answers after reopening.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import reclock

if TYPE_CHECKING:
    from reclock.session.database import Database

SETUP = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, region TEXT);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount NUMERIC(12,2), parts INT);

CREATE MATERIALIZED VIEW sales AS
  SELECT c.region, count(*) AS orders, sum(o.amount) AS total
  FROM orders o JOIN customers c ON o.customer = c.id
  GROUP BY c.region;

CREATE MATERIALIZED VIEW best AS SELECT region, total FROM sales ORDER BY total DESC LIMIT 1;
CREATE MATERIALIZED VIEW prices AS SELECT id, amount / parts AS price FROM orders;
"""


def show(db: Database, title: str) -> None:
    """Print the views, each at the time it was read at."""
    print(f"\n{title}")
    for view in ("sales", "best", "prices"):
        try:
            result = db.execute(f"SELECT * FROM {view} ORDER BY 1")
        except reclock.Error as error:
            print(f"  {view}: {error.code} {error.message}")
            continue
        print(f"  {view} at {result.timestamp}: {result.columns}")
        for row in result.rows:
            print("    " + ", ".join(str(value) for value in row))


def main() -> int:
    """Run the story; return 0 if reopening changed nothing."""
    with tempfile.TemporaryDirectory(prefix="reclock-views-") as home:
        state = Path(home) / "state"
        with reclock.open(state, background=False) as db:
            db.execute(SETUP)
            db.execute("INSERT INTO customers VALUES (1, 'north'), (2, 'south')")
            db.execute(
                "INSERT INTO orders VALUES (1, 1, 20.00, 2), (2, 2, 15.50, 1), (3, 1, 4.50, 1)"
            )
            show(db, "after the first orders")
            db.execute("UPDATE orders SET amount = 99.00 WHERE id = 2")
            db.execute("DELETE FROM orders WHERE id = 3")
            show(db, "after an update and a delete")
            db.execute("INSERT INTO orders VALUES (4, 2, 1.00, 0)")
            show(db, "an order of no parts: its view says so, the others go on")
            db.execute("DELETE FROM orders WHERE id = 4")
            show(db, "and is well again when the order is gone")
            before = db.execute("SELECT * FROM sales ORDER BY region").rows
        with reclock.open(state, background=False) as db:
            after = db.execute("SELECT * FROM sales ORDER BY region").rows
        print(f"\nthe same after reopening: {before == after}")
        return 0 if before == after else 1


if __name__ == "__main__":
    sys.exit(main())
