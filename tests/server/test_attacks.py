"""No statement of a client reaches Spark, files or the network beyond what the catalog allows.

``attacks.txt`` has the statements, and what a reader, a creator and a superuser get for each; here
they are sent over a socket, by the simple and by the extended protocol.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database
from reclock.session.file_roots import FileRoots
from reclock.session.statements import HANDLERS
from reclock.sql.parse import parse_statements
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.outlets import MemoryOutlets

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "hunter2-the-secret"
ROLES = ("joe", "ann", "boss")
LINES = [
    line
    for line in (Path(__file__).parent / "attacks.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
SETUP = f"""
CREATE TABLE t (a INT); INSERT INTO t VALUES (1); CREATE TABLE shut (a INT); CREATE SEQUENCE q;
INSERT INTO shut VALUES (7);
CREATE SOURCE feed (a TEXT) FROM KAFKA BROKER 'b:9092' TOPIC 'feed' FORMAT TEXT
  WITH ("kafka.sasl.password" = '{SECRET}', "kafka.sasl.username" = 'me');
CREATE USER joe PASSWORD '{SECRET}'; CREATE USER ann PASSWORD '{SECRET}';
CREATE USER boss PASSWORD '{SECRET}' SUPERUSER;
GRANT SELECT ON t TO public; GRANT CREATE ON DATABASE reclock TO ann;
"""


class Served(NamedTuple):
    """A server, where it is, and what it said."""

    db: Database
    where: dict[str, Any]
    places: dict[str, str]
    heard: list[str]

    def connect(self, role: str) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.where, user=role, password=SECRET, autocommit=True)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("attacked")
    root, out = base / "root", base / "out"
    for made in (root, out):
        made.mkdir()
    (out / "secret").write_text(SECRET)
    (root / "link").symlink_to(out / "secret")
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    db = Database(
        base / "state", ModelEngine(), background=False, outlets=MemoryOutlets(kafka),
        clusters=lambda connection: kafka.cluster(connection.isolation),
    )  # fmt: skip
    db.execute(SETUP.replace("'feed'", f"'{topic}'"))
    db.session("ann").execute("CREATE TABLE hers (a INT)")
    db.execute("GRANT ALL ON hers TO joe")
    heard: list[str] = []
    options = Options(port=0, grace=1, files=FileRoots.of([root], private=[base / "state"]))
    say = lambda event, words, **facts: heard.append(f"{event} {words} {facts}")  # noqa: E731
    with db, serving(db, options, say=say) as server:
        where = {"host": "127.0.0.1", "port": server.port, "dbname": "reclock"}
        yield Served(db, where, {"ROOT": str(root), "OUT": str(out)}, heard)


@pytest.fixture(scope="module")
def clients(served: Served) -> Iterator[dict[str, psycopg.Connection[Any]]]:
    made = {role: served.connect(role) for role in ROLES}
    yield made
    for connection in made.values():
        connection.close()


def code_of(connection: psycopg.Connection[Any], sql: str, *, extended: bool) -> str:
    """Return the SQLSTATE that a statement gets, "-" if it is answered."""
    pgconn = connection.pgconn
    text = sql.encode()
    result = pgconn.exec_params(text, []) if extended else pgconn.exec_(text)
    state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    return "-" if state is None else state.decode()


def state_of(served: Served) -> object:
    """Return what an attack must leave as it was: objects, roles, data, files outside."""
    db, base = served.db, Path(served.places["OUT"]).parent
    objects = db.execute("SELECT name, kind, sql, owner FROM reclock.objects ORDER BY name").rows
    data = [db.execute(f"SELECT * FROM {name}").rows for name in ("t", "shut")]
    files = sorted(p for p in base.rglob("*") if "state" not in p.relative_to(base).parts)
    return objects, db.roles, data, files


def tried(
    served: Served, clients: dict[str, psycopg.Connection[Any]], line: str
) -> tuple[list[str], list[str]]:
    """Try a line of the table; return what it says, and what is so."""
    codes, _, statement = line.partition("|")
    sql = statement.strip()
    for name, path in served.places.items():
        sql = sql.replace(f"{{{name}}}", path)
    expected: list[str] = []
    for code in codes.split():
        expected.append(expected[-1] if code == "=" else code)
    found = []
    for role, wanted in zip(ROLES, expected, strict=True):
        if (role, wanted, expected[0]) == ("boss", "-", "42501"):
            found.append("-")  # a superuser may: it would change what the next line finds
            continue
        ways = {code_of(clients[role], sql, extended=way) for way in (False, True)}
        found.append(" or ".join(sorted(ways)))
    return expected, found


def test_attacks(served: Served, clients: dict[str, psycopg.Connection[Any]]) -> None:
    before = state_of(served)
    results = {line: tried(served, clients, line) for line in LINES}
    wrong = {line: found for line, (said, found) in results.items() if said != found}
    assert not wrong
    assert state_of(served) == before
    assert not [words for words in served.heard if words.startswith("bug")]


def test_every_statement_that_changes_something_is_refused_to_a_reader(served: Served) -> None:
    """A row for each class of statement; one that is new has none, and fails here."""
    free = "-"
    rows = {
        "Truncate": ("TRUNCATE t", "42501"),
        "AlterSequence": ("ALTER SEQUENCE q RESTART", "42501"),
        "AlterTable": ("ALTER TABLE t ADD COLUMN more INT", "42501"),
        "Comment": ("COMMENT ON TABLE t IS 'mine'", "42501"),
        "CreateSequence": ("CREATE SEQUENCE mine", "42501"),
        "Maintain": ("VACUUM t", free),
        "Rename": ("ALTER TABLE t RENAME TO mine", "42501"),
        "AlterOwner": ("ALTER TABLE t OWNER TO joe", "42501"),
        "AlterSource": ("ALTER SOURCE t SET (on_error = 'skip')", "42501"),
        "AlterRetainHistory": ("ALTER TABLE t SET (RETAIN HISTORY FOR '1h')", "42501"),
        "AlterRole": ("ALTER ROLE boss NOLOGIN", "42501"),
        "AlterSecret": ("ALTER SECRET t AS 'mine'", "42501"),
        "CreateConnection": ("CREATE CONNECTION c TO KAFKA (BROKER 'b:1')", "42501"),
        "CreateSecret": ("CREATE SECRET c AS 'mine'", "42501"),
        "AlterSink": ("ALTER SINK s SET FROM t", "42501"),
        "AlterSystem": ("ALTER SYSTEM SET timestamp_interval = '1h'", "42501"),
        "Begin": ("BEGIN", free),
        "CatalogQuery": ("SELECT count(*) FROM pg_class", free),
        "CloseCursor": ("CLOSE ALL", free),
        "Commit": ("BEGIN; COMMIT", free),
        "Copy": ("COPY (SELECT a FROM shut) TO STDOUT", "42501"),
        "CopyFrom": ("COPY t FROM STDIN", "42501"),
        "CreateIndex": ("CREATE INDEX i ON t (a)", "42501"),
        "CreateMaterializedView": ("CREATE MATERIALIZED VIEW m AS SELECT a FROM t", "42501"),
        "CreateTableAs": ("CREATE TABLE more AS SELECT 1 AS a", "42501"),
        "CreateRole": ("CREATE ROLE r", "42501"),
        "CreateSink": (
            "CREATE SINK s FROM t INTO KAFKA BROKER 'b' TOPIC 'x' FORMAT JSON ENVELOPE DEBEZIUM",
            "42501",
        ),
        "CreateSource": ("CREATE SOURCE s FROM LOAD GENERATOR AUCTION (SEED 7)", "42501"),
        "CreateTable": ("CREATE TABLE x (a INT)", "42501"),
        "CreateView": ("CREATE VIEW v AS SELECT 1 AS a", "42501"),
        "Deallocate": ("DEALLOCATE ALL", free),
        "Declare": ("DECLARE c CURSOR WITH HOLD FOR SELECT a FROM shut", "42501"),
        "Delete": ("DELETE FROM t", "42501"),
        "Discard": ("DISCARD ALL", free),
        "Drop": ("DROP TABLE t CASCADE", "42501"),
        "DropRole": ("DROP ROLE ann", "42501"),
        "ExplainPlan": ("EXPLAIN SELECT a FROM shut", "42501"),
        "ExplainTimestamp": ("EXPLAIN TIMESTAMP FOR SELECT a FROM shut", "42501"),
        "Fetch": ("FETCH c", "34000"),
        "Grant": ("GRANT SELECT ON shut TO joe", "42501"),
        "Insert": ("INSERT INTO t VALUES (1)", "42501"),
        "Merge": (
            "MERGE INTO t USING t AS s ON true WHEN NOT MATCHED THEN INSERT VALUES (1)",
            "42501",
        ),
        "Prepare": ("PREPARE p AS SELECT a FROM shut", "42501"),
        "RefreshSource": ("ALTER SOURCE t REFRESH", "42501"),
        "Rollback": ("ROLLBACK", free),
        "Release": ("BEGIN; SAVEPOINT p; RELEASE p", free),
        "RollbackTo": ("BEGIN; SAVEPOINT p; ROLLBACK TO p", free),
        "Savepoint": ("BEGIN; SAVEPOINT p", free),
        "SelectStatement": ("SELECT a FROM shut", "42501"),
        "SetTransaction": ("SET TRANSACTION READ WRITE", free),
        "SetVariable": ("SET statement_timeout = '5s'", free),
        "Show": ("SHOW TABLES", free),
        "Subscribe": ("SUBSCRIBE shut", "42501"),
        "Unlisten": ("UNLISTEN *", free),
        "Update": ("UPDATE t SET a = 2", "42501"),
    }
    assert set(rows) == {kind.__name__ for kind in HANDLERS}
    before = state_of(served)
    for name, (sql, code) in rows.items():
        assert type(parse_statements(sql)[-1].statement).__name__ == name
        with served.connect("joe") as connection:
            assert code_of(connection, sql, extended=False) == code, sql
    assert state_of(served) == before


def test_a_reader_sees_no_secrets(
    served: Served, clients: dict[str, psycopg.Connection[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[object] = []
    relations = [f"SELECT * FROM reclock.{name}" for name in system_relations()]
    for role in ROLES:
        for sql in (
            *relations, "SHOW CREATE SOURCE feed", "SHOW OBJECTS", "SHOW ALL", "SHOW SOURCES",
            "EXPLAIN SELECT * FROM feed", "SHOW COLUMNS FROM feed", "SELECT current_user",
            "SELECT * FROM pg_authid", "SELECT * FROM pg_roles", "SELECT * FROM pg_user",
            "SELECT * FROM pg_stat_activity", "SELECT * FROM pg_settings",
            f"ALTER ROLE {role} PASSWORD '{SECRET}'",
            f"CREATE USER joe PASSWORD '{SECRET}'",
            f"CREATE SOURCE feed (a TEXT) FROM KAFKA BROKER 'b' TOPIC 'f' FORMAT TEXT"
            f" WITH (\"kafka.sasl.password\" = '{SECRET}')",
            f"CREATE USER x PASSWORD '{SECRET}' NONSENSE",
        ):  # fmt: skip
            result = clients[role].pgconn.exec_(sql.encode())
            shown += [result.error_field(field) for field in psycopg.pq.DiagnosticField]
            shown += [
                result.get_value(row, column)
                for row in range(result.ntuples)
                for column in range(result.nfields)
            ]
    assert len(shown) > len(relations)
    assert SECRET not in f"{shown} {served.heard} {caplog.text}"
    assert "SCRAM-SHA-256$" not in str(shown)


def system_relations() -> list[str]:
    from reclock.system import RELATIONS  # noqa: PLC0415 - the names alone

    return [name.removeprefix("reclock.") for name in RELATIONS]


def test_a_wrong_name_is_refused_as_a_wrong_password_is(served: Served) -> None:
    """The same words, code and number of messages; the work is that of one verifier in both."""
    said = set()
    for user in ("boss", "nobody-there"):
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(**served.where, user=user, password="wrong")
        said.add(str(caught.value).replace(user, "…"))
    assert len(said) == 1


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT " + "(" * 50_000 + "1" + ")" * 50_000, "54001"),
        ("SELECT " + " OR ".join(["a = 1"] * 5_000) + " FROM t", "54001"),
        ("SELECT " + "NOT " * 20_000 + "true", "54001"),
        ("SELECT '" + "a" * (17 << 20) + "'", "54000"),
        ("SELECT '" + "[" * 50_000 + "'::json", "54001"),
        ("SELECT interval '" + "9" * 400 + " days'", "22007"),
        ("SELECT $99999999999", "54000"),
        ("SELECT $0", "42P02"),
        ("SELECT " + "9" * 10_000, "22003"),
        ("SELECT repeat('a', 2000000000)", "54000"),
        ("SELECT length(repeat(repeat(a::text, 60000), 60000)) FROM t", "54000"),
        ("SELECT replace(repeat('a', 60000), 'a', repeat('a', 60000))", "54000"),
        ("SELECT count(*) FROM generate_series(1, 1000000000000)", "54000"),
        ("SELECT a FROM t LIMIT 9223372036854775807 OFFSET 9223372036854775807", "-"),
    ],
    ids=[
        "parentheses",
        "or",
        "not",
        "long",
        "json",
        "interval",
        "parameter",
        "zero",
        "digits",
        "repeat",
        "nested",
        "replace",
        "series",
        "limit",
    ],
)
def test_excess_is_an_error_in_words(
    served: Served, clients: dict[str, psycopg.Connection[Any]], sql: str, code: str
) -> None:
    assert code_of(clients["joe"], sql, extended=False) == code
    assert code_of(clients["joe"], "SELECT 1", extended=False) == "-"
    assert not [words for words in served.heard if words.startswith("bug")]


def test_as_many_parameters_as_the_protocol_allows(
    clients: dict[str, psycopg.Connection[Any]],
) -> None:
    names = ", ".join(f"${n}" for n in range(1, 2_001))
    pgconn = clients["joe"].pgconn
    result = pgconn.exec_params(f"SELECT 1 IN ({names})".encode(), [b"1"] * 2_000, [23] * 2_000)
    assert result.get_value(0, 0) == b"t"
    assert code_of(clients["joe"], "SELECT $65536::int", extended=True) == "54000"
    assert code_of(clients["joe"], "SELECT 1", extended=True) == "-"


def test_what_is_known_by_heart_is_still_forbidden(served: Served) -> None:
    """A REVOKE is in force for statements that are prepared, cached or looked up at once."""
    served.db.execute("CREATE TABLE open (a INT PRIMARY KEY); INSERT INTO open VALUES (1), (2)")
    served.db.execute("GRANT SELECT ON open TO joe, ann")
    served.db.session("ann").execute("CREATE VIEW seen AS SELECT a FROM open")
    served.db.session("ann").execute("GRANT SELECT ON seen TO joe")
    queries = ("SELECT a FROM open WHERE a = %s", "SELECT a FROM seen WHERE a = %s")
    with served.connect("joe") as connection:
        for _ in range(3):
            for query in queries:
                for prepare in (True, False):
                    found = connection.execute(query, (1,), prepare=prepare)  # type: ignore[call-overload]
                    assert found.fetchall() == [(1,)]
        served.db.execute("REVOKE SELECT ON open FROM joe, ann")
        for query in queries:
            for prepare in (True, False):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(query, (1,), prepare=prepare)  # type: ignore[call-overload]
    served.db.session("ann").execute("DROP VIEW seen")
    served.db.execute("DROP TABLE open")
