from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import Error, InvalidSyntax, InvalidValue, NotSupported
from reclock.sql import statement as st_
from reclock.sql.parse import parse_statement, parse_statements
from reclock.sql.statement.select import AsOf
from reclock.sql.statement.source import Format, KafkaConnection, LoadGenerator
from reclock.sql.statement.subscribe import SubscribeEnvelope
from reclock.sql.types import BIGINT, Numeric


def test_statements_have_positions() -> None:
    first, second = parse_statements("SELECT 1;;\n  COMMIT -- done\n;")
    assert (first.text, first.position) == ("SELECT 1", 1)
    assert (second.text, second.position) == ("COMMIT", 14)


def test_create_source_of_the_contract() -> None:
    made = parse_statement(
        "CREATE SOURCE orders (id BIGINT, amount NUMERIC(12,2)) FROM KAFKA BROKER 'b:9092' "
        "TOPIC 'orders' KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE PARTITION, OFFSET AS o "
        "ENVELOPE NONE RECLOCK USING m WITH (timestamp_interval = '1s')"
    )
    assert isinstance(made, st_.CreateSource)
    assert made.connection == KafkaConnection("b:9092", "orders")
    assert (made.key_format, made.value_format) == (Format("text"), Format("json"))
    assert [(i.what, i.name) for i in made.include] == [("partition", "partition"), ("offset", "o")]
    assert [c.type for c in made.columns.columns] == [BIGINT, Numeric(12, 2)]
    assert str(made.reclock_using) == "m"
    assert made.options == (("timestamp_interval", "1s"),)


def test_clauses_out_of_order_are_refused() -> None:
    with pytest.raises(InvalidSyntax) as refused:
        parse_statement(
            "CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC 't' ENVELOPE NONE FORMAT JSON"
        )
    assert refused.value.position == 71


def test_load_generator_options() -> None:
    made = parse_statement(
        "CREATE SOURCE bids FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 1000)"
    )
    assert isinstance(made, st_.CreateSource)
    assert made.connection == LoadGenerator("auction", (("seed", "7"), ("events_per_tick", "1000")))


def test_create_sink_of_the_contract() -> None:
    made = parse_statement(
        "CREATE SINK out FROM sales INTO KAFKA BROKER 'b' TOPIC 'sales' KEY (region) NOT ENFORCED "
        "FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)"
    )
    assert isinstance(made, st_.CreateSink)
    assert (made.key, made.key_not_enforced, made.envelope) == (("region",), True, "upsert")
    assert made.options == (("reuse_topic", "true"),)


def test_create_table() -> None:
    made = parse_statement(
        "CREATE TABLE IF NOT EXISTS \"T\" (id BIGINT PRIMARY KEY, r TEXT NOT NULL DEFAULT 'x') "
        "WITH (timeline = 'replay', RETAIN HISTORY FOR '1 h')"
    )
    assert isinstance(made, st_.CreateTable)
    assert made.name.parts == ("T",)
    assert made.columns.primary_key == ("id",)
    assert [c.nullable for c in made.columns.columns] == [False, False]
    assert (made.timeline, made.retain_history_ms) == ("replay", 3_600_000)


def test_the_order_of_an_index_and_its_operators_are_taken_and_say_nothing() -> None:
    given = (
        "CREATE INDEX ON t (a varchar_pattern_ops, lower(b) text_ops DESC NULLS LAST,"
        " c ASC, d NULLS FIRST, text_ops)"
    )
    made = parse_statement(given)
    plain = parse_statement("CREATE INDEX ON t (a, lower(b), c, d, text_ops)")
    assert isinstance(made, st_.CreateIndex)
    assert made == plain


def test_select_as_of() -> None:
    made = parse_statement("SELECT a AS of_x FROM t AS OF AT LEAST 5")
    assert isinstance(made, st_.SelectStatement)
    assert made.as_of == AsOf(5, at_least=True)


def test_subscribe_with_every_clause() -> None:
    made = parse_statement(
        "SUBSCRIBE TO v WITH (SNAPSHOT = false, PROGRESS) AS OF 5 UP TO 9 "
        "ENVELOPE UPSERT (KEY (a, b))"
    )
    assert isinstance(made, st_.Subscribe)
    assert (made.snapshot, made.progress, made.up_to) == (False, True, 9)
    assert made.envelope == SubscribeEnvelope("upsert", ("a", "b"))
    ordered = parse_statement(
        "COPY (SUBSCRIBE (SELECT 1 a) WITHIN TIMESTAMP ORDER BY a DESC) TO STDOUT"
    )
    assert isinstance(ordered, st_.Copy)
    assert isinstance(ordered.of, st_.Subscribe)
    assert [i.descending for i in ordered.of.order_within] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "DROP MATERIALIZED VIEW IF EXISTS a, s.b CASCADE",
        "ALTER SYSTEM SET timestamp_interval = '1s'",
        "ALTER SYSTEM RESET ALL",
        "ALTER TABLE t SET (RETAIN HISTORY FOR '1 h')",
        "ALTER INDEX i RESET (RETAIN HISTORY)",
        "SET transaction_isolation = 'strict serializable'",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "RESET statement_timeout",
        "SHOW MATERIALIZED VIEWS",
        "SHOW COLUMNS FROM t",
        "SHOW CREATE VIEW v",
        "SHOW statement_timeout",
        "BEGIN READ ONLY",
        "START TRANSACTION",
        "ROLLBACK",
        "EXPLAIN PLAN FOR SELECT 1",
        "EXPLAIN TIMESTAMP FOR SELECT 1",
        "EXPLAIN MATERIALIZED VIEW v",
        "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1",
        "CREATE INDEX ON t (a, lower(s))",
        "CREATE OR REPLACE VIEW v (x) AS SELECT 1",
        "INSERT INTO t (a, b) VALUES (1, DEFAULT), ($1, 'x')",
        "INSERT INTO t DEFAULT VALUES",
        "UPDATE t SET a = DEFAULT, b = b + 1 WHERE x IS DISTINCT FROM y",
        "DELETE FROM t AS x WHERE x.a = 1",
        "VALUES (1, 2), (3, 4)",
        "(SELECT 1) UNION ALL SELECT 2",
    ],
)
def test_accepted(text: str) -> None:
    parse_statement(text)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("SELEKT 1", "42601", 'near "SELEKT"'),
        ("SELECT 1 FROM t WHERE", "42601", "syntax error"),
        ("SELECT 'a", "42601", "unfinished"),
        ("CREATE TABLE t (a int, a int)", "42701", "more than once"),
        ("CREATE TABLE t (a int, PRIMARY KEY (b))", "42703", '"b"'),
        ("CREATE TABLE t (a int) WITH (retain = 1)", "42601", "unknown option"),
        ("CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR 'soon')", "22023", "soon"),
        ("CREATE UNIQUE INDEX i ON t (a) WHERE a > 1", "0A000", "WHERE"),
        (
            "CREATE TABLE t (a int, FOREIGN KEY (a) REFERENCES u)",
            "0A000",
            "FOREIGN KEY constraints",
        ),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u", "0A000", "constraints are"),
        ("CREATE INDEX ON t (a other_ops)", "0A000", "Alias"),
        ("CREATE TABLE t (a serial DEFAULT 5)", "42601", "multiple default"),
        ("CREATE SOURCE s (a int CHECK (a > 1)) FROM KAFKA BROKER 'b' TOPIC 't'", "0A000", "CHECK"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE a > 1 DO NOTHING", "0A000", "ON CONFLICT"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a + 1) DO NOTHING", "0A000", "expression"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "42601", "inference"),
        ("UPDATE t SET (a, b) = (1)", "42601", "number of columns"),
        ("UPDATE t SET a[1] = 1", "0A000", "assignment"),
        ("WITH q AS (DELETE FROM t RETURNING a) SELECT * FROM q", "0A000", "Delete"),
        ("MERGE INTO t USING u ON true WHEN MATCHED THEN INSERT VALUES (1)", "42601", "INSERT"),
        (
            "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING",
            "42601",
            "unreachable",
        ),
        ("SELECT 1 FROM t TABLESAMPLE SYSTEM (1)", "0A000", "TABLESAMPLE"),
        ("SELECT 1 FROM t JOIN u USING (a) AS x", "0A000", "USING"),
        ("SELECT DISTINCT a FROM t QUALIFY a > 1", "0A000", "QUALIFY"),
        ("SELECT lag(a) IGNORE NULLS OVER () FROM t", "0A000", "IGNORE NULLS"),
        ("SET TRANSACTION ISOLATION LEVEL SNAPSHOT", "0A000", "SNAPSHOT"),
        ("SUBSCRIBE SELECT 1", "42601", "SELECT"),
        ("DROP TABLE t garbage", "42601", "garbage"),
        ("COMMIT 5", "42601", "5"),
    ],
)
def test_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(Error) as refused:
        parse_statements(text)
    assert refused.value.code == code
    assert words in refused.value.message


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_politely(text: str) -> None:
    with suppress(InvalidSyntax, NotSupported, InvalidValue):
        parse_statements(text)


def test_nothing_of_the_grammar_is_lost_in_a_query() -> None:
    base = "SELECT a FROM t WHERE a > 1 GROUP BY a HAVING a > 2 ORDER BY a LIMIT 3"
    without = [
        base.replace(clause, "")
        for clause in ("WHERE a > 1 ", "GROUP BY a ", "HAVING a > 2 ", "ORDER BY a ", "LIMIT 3")
    ]
    assert len({str(parse_statement(text)) for text in (base, *without)}) == len(without) + 1
