"""The shell without a terminal: what it runs, and what it prints."""

from __future__ import annotations

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.shell.shell import Shell, whole
from reclock.session.database import Database


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "db", ModelEngine(), clock=ManualClock(1_000), background=False) as db:
        yield db


@pytest.fixture
def said(db):
    lines = []
    shell = Shell(db, lines.append)

    def say(text):
        lines.clear()
        shell.feed(text)
        return "\n".join(lines)

    say.shell = shell
    yield say
    shell.close()


def test_a_statement_runs_when_its_semicolon_has_come(said):
    assert said("CREATE TABLE t (a INT,\n") == ""
    assert said.shell.waiting
    assert said(" b TEXT);\n") == "CREATE TABLE"
    assert not said.shell.waiting


def test_rows_are_aligned(said):
    said("CREATE TABLE t (region TEXT, n BIGINT);\n")
    assert said("INSERT INTO t VALUES ('north', 3), (NULL, 120), ('a\nb', 1);") == "INSERT 0 3"
    assert said("SELECT region, n FROM t ORDER BY n;\n") == (
        " region | n\n--------+-----\n a\\nb   |   1\n north  |   3\n        | 120\n(3 rows)"
    )


def test_a_write_that_gives_rows_says_what_it_did(said):
    said("CREATE TABLE t (n BIGINT);\n")
    text = said("INSERT INTO t VALUES (3) RETURNING n;\n")
    assert text.splitlines()[-2:] == ["(1 row)", "INSERT 0 1"]


def test_expanded_output_has_a_line_for_each_column(said):
    said("\\x\n")
    assert said("SELECT 1 AS one, 'x' AS longer;\n") == ("-[ RECORD 1 ]\none    | 1\nlonger | x")


def test_an_error_says_where_it_is_and_stops_what_follows(said):
    text = said("SELECT 1;\nSELECT nothing\nFROM nowhere;\nSELECT 2;\n")
    assert "ERROR 42P01" in text
    assert "LINE 2: FROM nowhere" in text
    assert text.splitlines()[text.splitlines().index("LINE 2: FROM nowhere") + 1].endswith("^")
    assert " 2\n" not in text
    assert said.shell.failed
    assert "(1 row)" in said("SELECT 3;\n")
    assert not said.shell.failed


def test_a_plan_is_shown_line_by_line(said):
    said("CREATE TABLE t (a INT);\n")
    assert "timeline: EpochMilliseconds\n  timestamp: " in said(
        "EXPLAIN TIMESTAMP FOR SELECT * FROM t;\n"
    )


def test_a_syntax_error_is_told_not_raised(said):
    assert "ERROR 42601" in said("SELEKT 1;\n")


def test_objects_and_columns_are_described(said):
    said("CREATE TABLE orders (id BIGINT PRIMARY KEY, amount NUMERIC(12,2));\n")
    said("CREATE VIEW large AS SELECT * FROM orders WHERE amount > 5;\n")
    everything = said("\\d\n")
    assert "orders" in everything
    assert "large" in everything
    assert "source_status" not in everything
    assert "numeric(12,2)" in said("\\d orders\n")
    assert "large" not in said("\\dt\n")
    assert "orders" not in said("\\dv\n")
    assert "CREATE VIEW large" in said("\\sf large\n")
    assert "ERROR 42P01" in said("\\d nothing\n")


def test_commands_of_the_shell(said, tmp_path):
    assert "\\timing" in said("\\?\n")
    assert said("\\timing\n") == "Timing is on."
    assert "Time: " in said("SELECT 1;\n")
    assert "ERROR 42601: unknown command \\zap" in said("\\zap\n")
    assert "cannot read" in said("\\i nowhere.sql\n")
    file = tmp_path / "f.sql"
    file.write_text("SELECT 41 + 1;")
    assert "42" in said(f"\\i {file}\n")
    assert said("\\q\nSELECT 1;\n") == ""
    assert said.shell.left


def test_a_subscription_that_ends_is_shown_to_its_end(said, db):
    said("CREATE TABLE t (a INT);\nINSERT INTO t VALUES (7);\n")
    at = db.execute("SELECT 1 FROM t").timestamp
    text = said(f"SUBSCRIBE TO t AS OF {at} UP TO {at + 1};\n")
    assert text == f"mz_timestamp\tmz_diff\ta\n{at}\t1\t7"


def test_a_subscription_can_be_stopped(said, monkeypatch):
    said("CREATE TABLE t (a INT);\n")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reclock.subscribe.subscription.Subscription.fetch", interrupted)
    assert said("SUBSCRIBE TO t;\n").endswith("stopped")
    assert not said.shell.failed


def test_copy_prints_lines(said):
    assert said("COPY (SELECT 1, NULL) TO STDOUT;\n") == "1\t\\N"


def test_what_is_left_runs_at_the_end_of_a_script(said):
    assert said("SELECT 5") == ""
    said.shell.finish()
    assert not said.shell.waiting


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 1; -- done", True),
        ("SELECT $$;", False),
        ("SELECT 1 /* ;", False),
    ],
)
def test_where_statements_end(text, is_whole):
    assert whole(text) is is_whole
