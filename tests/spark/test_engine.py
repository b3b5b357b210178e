"""The whole way through Spark: the same statements give what the model gives.

Everything around the engine is tested without Spark; here it is enough that the engine
does what the seam says: ticks, hydration, errors, look-ups, frames, restarts.
"""

from __future__ import annotations

import re

import pytest

import reclock
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.errors import ExpressionFailed
from reclock.session.database import Database

pytestmark = pytest.mark.spark

SCRIPT = (
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, amount NUMERIC(8, 2))",
    "CREATE TABLE customers (id INT PRIMARY KEY, region TEXT)",
    "INSERT INTO customers VALUES (1, 'n'), (2, 's'), (3, NULL)",
    "CREATE MATERIALIZED VIEW sales AS SELECT region, count(*) AS n, sum(amount) AS total"
    " FROM orders JOIN customers ON orders.customer = customers.id GROUP BY region",
    "INSERT INTO orders VALUES (1, 1, 2.5), (2, 1, 3), (3, 2, 4), (4, 9, 1), (5, 3, 7)",
    "CREATE MATERIALIZED VIEW top AS SELECT region, total FROM sales ORDER BY total DESC LIMIT 2",
    "UPDATE orders SET amount = amount + 10 WHERE customer = 2",
    "DELETE FROM customers WHERE region IS NULL",
    "CREATE MATERIALIZED VIEW lonely AS SELECT o.id FROM orders o LEFT JOIN customers c"
    " ON o.customer = c.id WHERE c.id IS NULL",
    "CREATE INDEX ON orders (customer)",
    "INSERT INTO orders SELECT id + 100, customer, amount / 2 FROM orders WHERE customer = 1",
    "INSERT INTO customers VALUES (9, 'w')",
)
QUESTIONS = (
    "SELECT * FROM sales ORDER BY region",
    "SELECT * FROM top ORDER BY total",
    "SELECT * FROM lonely ORDER BY id",
    "SELECT amount FROM orders WHERE customer = 2",
    "SELECT id FROM orders WHERE customer = 1 ORDER BY id",
    "SELECT region, max(amount) FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY region HAVING count(*) > 1 ORDER BY region",
)


def test_statements_give_what_the_model_gives(tmp_path):
    model = Database(tmp_path / "model", ModelEngine(), clock=ManualClock(1), background=False)
    spark = reclock.open(tmp_path / "spark", clock=ManualClock(1), background=False)
    with model:
        for statement in SCRIPT:
            assert spark.execute(statement) == model.execute(statement)
            spark.tick()
            model.tick()
        expected = [model.execute(question).rows for question in QUESTIONS]
    assert [spark.execute(question).rows for question in QUESTIONS] == expected

    frame = spark.dataframe("SELECT region, total FROM sales WHERE region = $1", ("s",))
    assert frame.columns == ["region", "total"]
    assert [tuple(row) for row in frame.collect()] == [("s", 14)]

    spark.execute("CREATE MATERIALIZED VIEW r AS SELECT id, 1 / (customer - 9) AS x FROM orders")
    with pytest.raises(ExpressionFailed) as caught:
        spark.execute("SELECT * FROM r")
    assert caught.value.code == "22012"
    spark.execute("DELETE FROM orders WHERE customer = 9")
    assert len(spark.execute("SELECT * FROM r").rows) == 6

    rows = [spark.execute(question).rows for question in QUESTIONS]
    spark.close()
    with reclock.open(tmp_path / "spark", clock=ManualClock(1), background=False) as again:
        assert [again.execute(question).rows for question in QUESTIONS] == rows
        again.execute("DROP TABLE orders, customers CASCADE")
        assert again.execute("SHOW OBJECTS").rows == []
        assert again._core.segments.names() == []


def test_ticks_say_what_ran_where_and_explain_says_it_before(tmp_path):
    clock = ManualClock(1_000)
    query = "SELECT a.k, count(*) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY a.k"
    aggregate = "SELECT k, string_agg(k::text, ',') AS s FROM t GROUP BY k"
    columns = "phase, rows, place, driver_rows, tasks, shuffled_bytes"
    with reclock.open(tmp_path, clock=clock, background=False, master="local[*]") as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT)")
        told = {}
        for execution in ("auto", "driver", "spark"):
            db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
            (row,) = db.execute(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}").rows
            told[execution] = row[0].splitlines()[0]
        assert re.fullmatch(
            r"Ticks: of more than about [\d,]+ changed rows a Spark job of (\d) stages, of fewer in"
            r" the driver", told["auto"],
        )  # fmt: skip
        assert told["driver"] == "Ticks: in the driver, by execution = driver"
        stages = int(told["spark"].split()[5])
        assert told["spark"] == f"Ticks: a Spark job of {stages} stages, by execution = spark"
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        parts = db._core.engine._spark.parallelism

        def tick(execution, statement):
            db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
            db.execute(statement)
            clock.advance(1_000)
            db.tick()
            found = db.execute(f"SELECT timestamp, {columns} FROM reclock.ticks").rows
            last = max(time for time, _, rows, *_ in found if rows)
            return [row[1:] for row in found if row[0] == last]

        small = tick("driver", "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
        assert {row[2:] for row in small if row[0] == "gather"} == {("driver", 3, 0, 0)}
        assert all(rows == ours for _, rows, _, ours, _, _ in small)
        large = tick("spark", "INSERT INTO t VALUES (4, 1), (5, 2)")
        assert {(row[2], row[4]) for row in large} == {("spark", stages * parts)}
        assert {row[0]: (row[1], row[3]) for row in large}["gather"] == (2, 2)
        assert {row[3] for row in large if row[0] != "gather"} == {0}
        assert all(row[5] > 0 for row in large)
        db.execute(f"CREATE MATERIALIZED VIEW w AS {aggregate}")  # groups are a query of Spark's
        groups = tick("spark", "INSERT INTO t VALUES (6, 1), (7, 2)")
        assert all(row[4] > large[0][4] and row[5] > large[0][5] for row in groups)
        (row,) = db.execute("EXPLAIN MATERIALIZED VIEW v").rows
        assert row[0].startswith("Ticks: a Spark job of ")
        assert "Ticks" not in db.execute(f"EXPLAIN {query}").rows[0][0]
