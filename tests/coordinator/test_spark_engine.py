"""The whole way through Spark: the same statements give what the model gives.

Everything around the engine is tested without Spark; here it is enough that the engine
does what the seam says: ticks, hydration, errors, look-ups, frames, restarts.
"""

from __future__ import annotations

import pytest

import reclock
from reclock import ManualClock
from reclock.coordinator.database import Database
from reclock.errors import ExpressionFailed
from reclock.testing.model_engine import ModelEngine

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
