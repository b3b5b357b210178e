from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reclock
from engines.model_engine import ModelEngine
from reclock.errors import Interrupted, InvalidValue, NotSupported, StatementTimeout, UndefinedName
from reclock.session.database import Database
from reclock.sql import types as t
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = (
    "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d"
    " WHERE a.attname || b.attname = c.attname || d.attname || 'x'"
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("pg") / "state", ModelEngine(), background=False)
    made.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    with made:
        yield made


def test_what_a_query_takes_and_gives(db: Database) -> None:
    (parsed,) = parse_statements(
        "SELECT c.oid, relname, relkind, relnatts, relacl, count(*), NULL AS nothing, reltuples,"
        " sum(relnatts) AS total FROM pg_class c WHERE relname = $1 AND c.oid = ANY($2)"
        " GROUP BY 1, 2, 3, 4, 5, 8 LIMIT $3"
    )  # fmt: skip
    with db.session() as session:
        found = session.describe(parsed)
    assert found.parameters == (t.TEXT, t.Array(t.OID), t.BIGINT)
    assert found.schema is not None
    assert [(c.name, c.type) for c in found.schema] == [
        ("oid", t.OID), ("relname", t.TEXT), ("relkind", t.CHAR), ("relnatts", t.SMALLINT),
        ("relacl", t.Array(t.TEXT)), ("count", t.BIGINT), ("nothing", t.TEXT),
        ("reltuples", t.REAL), ("total", t.Numeric(38, 0)),
    ]  # fmt: skip


def test_parameters(db: Database) -> None:
    text = "SELECT relname FROM pg_class WHERE relname = ANY($1) AND relkind = $2 LIMIT $3"
    assert db.execute(text, (["t", "u"], "r", 5)).rows == [("t",)]
    assert db.execute("SELECT $1::regclass::oid = 't'::regclass AS same", ("t",)).rows == [(True,)]


def test_cursors_copies_and_plans(db: Database) -> None:
    names = "SELECT relname FROM pg_class WHERE relname = $1"
    with db.session() as session:
        session.execute("BEGIN")
        for way in ("DECLARE c CURSOR FOR", "COPY (", "EXPLAIN"):
            end = ") TO STDOUT" if way == "COPY (" else ""
            (parsed,) = parse_statements(f"{way} {names}{end}")
            assert session.describe(parsed).parameters == (t.TEXT,)
        session.execute(f"DECLARE c CURSOR FOR {names}", ("t",))
        assert session.execute("FETCH ALL c").rows == [("t",)]
        assert list(session.copy(f"COPY ({names}) TO STDOUT", ("t",))) == ["t\n"]
        session.execute("COMMIT; DECLARE h CURSOR WITH HOLD FOR SELECT 1 FROM pg_am")
        assert session.execute("FETCH 1 FROM h").rows == [(1,)]
    assert "t\n" in list(db.copy("COPY pg_class (relname) TO STDOUT"))
    ((plan,),) = db.execute(f"EXPLAIN {names}", ("t",)).rows
    assert plan.startswith("Answered by: the catalog, without a Spark job")
    with pytest.raises(NotSupported, match="cannot read the catalog and other relations"):
        db.execute("EXPLAIN SELECT * FROM pg_class, t")


def test_each_one_sees_what_he_may_use(tmp_path: Path) -> None:
    with Database(tmp_path / "state", ModelEngine(), background=False) as db:
        db.execute("CREATE TABLE a (x INT PRIMARY KEY); CREATE TABLE b (y INT PRIMARY KEY);"
                   " CREATE TABLE c (z INT); CREATE VIEW d AS SELECT x FROM a")  # fmt: skip
        db.execute("CREATE USER joe; CREATE USER ann; CREATE USER boss SUPERUSER;"
                   " GRANT SELECT ON a, d TO joe; GRANT INSERT ON c TO public;"
                   " GRANT CREATE ON DATABASE reclock TO joe")  # fmt: skip
        db.session("joe").execute("CREATE VIEW v AS SELECT x FROM a; GRANT SELECT ON v TO ann")

        def seen(role: str | None, what: str, of: str = "table_schema = 'public'") -> set[object]:
            column, relation = what.split()
            sql = f"SELECT {column} FROM information_schema.{relation}"
            with db.session(role) as session:
                return {row[0] for row in session.execute(f"{sql} WHERE {of}").rows}

        for role, names in (("joe", "acdv"), ("ann", "cv"), ("boss", "abcdv"), (None, "abcdv")):
            assert seen(role, "table_name tables") == set(names)
            assert seen(role, "table_name columns") == set(names)
        assert seen("joe", "table_name table_constraints") == {"a"}
        assert seen("joe", "table_name key_column_usage") == {"a"}
        hidden = "view_definition IS NULL AND table_schema = 'public'"
        assert seen("joe", "table_name views", hidden) == {"d"}
        assert seen("ann", "table_name views", hidden) == {"v"}
        assert seen("boss", "table_name views", hidden) == set()
        assert seen("joe", "grantee table_privileges") == {"joe", "ann", "PUBLIC"}
        assert seen("ann", "grantee role_table_grants") == {"ann", "PUBLIC"}
        assert seen("ann", "role_name enabled_roles", "true") == {"ann"}
        assert seen("ann", "table_name tables", "table_name IN ('errors', 'ticks')") == {"ticks"}
        named = db.session("ann").execute("SELECT relname FROM pg_class WHERE relname = 'b'")
        assert named.rows == [("b",)], "names are everybody's in pg_catalog"
        db.execute("REVOKE SELECT ON a FROM joe")
        assert "a" not in seen("joe", "table_name tables")


def test_settings_are_those_of_the_session(db: Database) -> None:
    sql = "SELECT setting, source FROM pg_settings WHERE name = 'statement_timeout'"
    with db.session() as one, db.session() as other:
        one.execute("SET statement_timeout = '7s'")
        assert one.execute(sql).rows == [("7s", "session")]
        assert other.execute(sql).rows[0][1] == "default"
        one.execute("RESET statement_timeout")
        assert one.execute(sql).rows == other.execute(sql).rows


def test_settings_and_the_session(db: Database) -> None:
    with db.session() as session:
        session.execute("SET application_name = 'mine'")
        assert session.execute(
            "SELECT current_setting('application_name'), current_setting('nothing', true),"
            " current_database(), current_user, current_schemas(true)"
        ).rows == [("mine", None, "reclock", "owner", ["pg_catalog", "public"])]
        with pytest.raises(UndefinedName):
            session.execute("SELECT current_setting('nothing') FROM pg_am")


def test_it_can_be_cancelled(db: Database) -> None:
    with db.session() as session:
        timer = threading.Timer(0.3, session.interrupt.set, [Interrupted("enough")])
        timer.start()
        with pytest.raises(Interrupted, match="enough"):
            session.execute(LONG)
        timer.join()
        session.interrupt.clear()
        assert session.execute("SELECT 1 FROM pg_am").rows == [(1,), (1,)]


def test_it_ends_in_time(db: Database) -> None:
    with db.session() as session:
        session.execute("SET statement_timeout = '200ms'")
        with pytest.raises(StatementTimeout):
            session.execute(LONG)


def test_its_memory_is_bounded(db: Database) -> None:
    with pytest.raises(NotSupported, match="memory"):
        db.execute("SELECT array_agg(g) FROM generate_series(1, 60000000) g, pg_am")


def test_what_it_gives_is_bounded(db: Database) -> None:
    with pytest.raises(NotSupported, match="64 MiB") as caught:
        db.execute("SELECT g, 'some text' FROM generate_series(1, 60000000) g, pg_am")
    assert caught.value.code == "54000"


def test_an_error_after_the_first_rows(db: Database) -> None:
    text = "SELECT (CASE g WHEN 90000 THEN 'x' ELSE '1' END)::int FROM generate_series(1, 99999) g"
    with pytest.raises(InvalidValue) as caught:
        db.execute(f"{text}, pg_am LIMIT 199998")
    assert caught.value.code == "22P02"


def test_versions_are_kept_while_transactions_see_them(db: Database) -> None:
    names = "SELECT relname FROM pg_class WHERE relname LIKE 'new%' ORDER BY 1"
    sessions = [db.session() for _ in range(6)]
    for number, session in enumerate(sessions):
        session.execute("BEGIN")
        assert len(session.execute(names).rows) == number
        db.execute(f"CREATE TABLE new{number} (a INT)")
    for number, session in enumerate(sessions):
        assert session.execute(names).rows == [(f"new{k}",) for k in range(number)]
        session.close()
    assert len(db._core.pg._catalogs._known) <= 8


def test_many_at_once(db: Database) -> None:
    found: list[object] = []
    text = "SELECT pg_get_userbyid(relowner), format_type(20, -1) FROM pg_class WHERE relname = 't'"

    def ask() -> None:
        with db.session() as session:
            found.extend(session.execute(text).rows for _ in range(3))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[("owner", "bigint")]] * 18


def test_who_asks_nothing_does_not_load_it() -> None:
    package = Path(reclock.__file__).parent
    loading = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"^import duckdb$|^from duckdb", path.read_text(), re.MULTILINE)
    }
    assert loading == {"server/pg_catalog/engine.py", "server/pg_catalog/failure.py"}
    import_of = re.compile(r"^from reclock.server.pg_catalog.(engine|failure) import", re.MULTILINE)
    using = {path.name for path in package.rglob("*.py") if import_of.search(path.read_text())}
    assert using == {"engine.py"}
