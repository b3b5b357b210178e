"""Secrets and connections: what they say, who uses them, and that no secret is ever shown."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from reclock.catalog.item import VERSION
from reclock.errors import Error
from reclock.failpoints import FailpointRaised, armed
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.pipeline.plan import Action
from reclock.testing.kafka_upstream import Record
from reclock.testing.schema_registry import running_registry

if TYPE_CHECKING:
    from reclock.connectors.kafka.options import Connection

SECRET = "hunter2-never-shown"
KAFKA = (
    f"CREATE SECRET pw AS '{SECRET}'; CREATE CONNECTION kafka TO KAFKA ("
    "BROKER 'b:1', SASL USERNAME = 'joe', sasl.password = SECRET pw, security.protocol 'SASL_SSL')"
)


@pytest.fixture
def reached(opener):
    """Return the connections to clusters, as they are asked for."""
    seen: list[Connection] = []
    cluster = opener.kafka.cluster

    def noted(connection):
        seen.append(connection)
        return cluster(connection.isolation)

    opener.clusters = noted
    return seen


def code(db, sql):
    with pytest.raises(Error) as caught:
        db.execute(sql)
    return caught.value.code


def source(db, opener, name="s", rest="FORMAT TEXT"):
    topic = opener.kafka.create_topic(1)
    db.execute(f"CREATE SOURCE {name} (x TEXT) FROM KAFKA CONNECTION kafka TOPIC '{topic}' {rest}")
    return topic


def password(connection):
    return dict(connection.options)["sasl.password"].reveal()


def test_a_source_reads_by_its_connection_also_after_a_restart(opener, reached):
    db = opener()
    db.execute(KAFKA)
    topic = source(db, opener)
    opener.kafka.produce(topic, 0, Record(b"one"))
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT x FROM s").rows == [("one",)]
    for _ in range(2):
        last = reached[-1]
        assert last.brokers == "b:1"
        assert dict(last.options)["sasl.username"] == "joe"
        assert password(last) == SECRET
        versions = {i.name: i.record()["v"] for i in db._core.world.catalog.items.values()}
        assert versions == {"pw": VERSION, "kafka": VERSION, "s": VERSION}
        db = opener.reopened(db)
    assert db.execute("SELECT x FROM s").rows == [("one",)]
    record = next(i for i in db._core.world.catalog.items.values() if i.name == "s").record()
    assert SECRET not in str(record), "the value is in one place"


def test_an_altered_secret_is_used_at_once(opener, reached):
    db = opener()
    db.execute(KAFKA)
    topic = source(db, opener)
    db.execute("CREATE VIEW v AS SELECT x FROM s")
    assert db.execute("ALTER SECRET pw AS 'another'").tag == "ALTER SECRET"
    assert password(reached[-1]) == "another"
    opener.kafka.produce(topic, 0, Record(b"two"))
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT x FROM v").rows == [("two",)]
    db = opener.reopened(db)
    assert password(reached[-1]) == "another"
    assert code(db, "ALTER SECRET kafka AS 'x'") == "42809"
    assert code(db, "ALTER SECRET nothing AS 'x'") == "42P01"


@pytest.mark.parametrize("point", ["ddl.publish.before", "durable.commit.after"])
def test_a_crash_leaves_the_old_or_the_new_secret(opener, reached, point):
    db = opener()
    db.execute(KAFKA)
    source(db, opener)
    db.tick()
    with suppress(FailpointRaised), armed({point: "raise"}):
        db.execute("ALTER SECRET pw AS 'another'")
    opener.reopened(db)
    assert password(reached[-1]) in {SECRET, "another"}


def test_sinks_and_registries_use_connections(opener, reached):
    with running_registry() as registry:
        db = opener()
        db.execute(KAFKA)
        db.execute(
            "CREATE SECRET token AS 'joe:pw'; CREATE CONNECTION registry "
            f"TO CONFLUENT SCHEMA REGISTRY (URL '{registry.url}', "
            "BASIC AUTH USER INFO SECRET token)"
        )
        db.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        db.execute(
            "CREATE SINK out FROM t INTO KAFKA CONNECTION kafka TOPIC 'out' FORMAT AVRO USING "
            "CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE DEBEZIUM WITH (reuse_topic)"
        )
        sink = db._core.world.catalog.find(("out",))
        assert dict(sink.statement.options)["registry.basic.auth.user.info"] == "joe:pw"
        assert sink.statement.connection.broker == "b:1"
        assert sink.statement.format.registry == registry.url
        db.execute("ALTER SECRET token AS 'joe:new'; INSERT INTO t VALUES (1)")
        opener.clock.advance(1_000)
        db.tick()
        db = opener.reopened(db)
        sink = db._core.world.catalog.find(("out",))
        assert dict(sink.statement.options)["registry.basic.auth.user.info"] == "joe:new"
        assert code(db, "DROP CONNECTION registry") == "2BP01"
        db.execute("DROP SINK out; DROP CONNECTION registry, kafka; DROP SECRET pw, token")
        assert db.execute("SHOW OBJECTS").rows == [("t", "table")]


def test_what_is_used_is_not_dropped(opener, reached):
    db = opener()
    db.execute(KAFKA)
    source(db, opener)
    assert code(db, "DROP SECRET pw") == "2BP01"
    assert code(db, "DROP CONNECTION kafka") == "2BP01"
    assert db.execute("SHOW SECRETS").rows == [("pw",)]
    assert db.execute("SHOW CONNECTIONS").rows == [("kafka",)]
    db.execute("DROP SECRET pw CASCADE")
    assert db.execute("SHOW OBJECTS").rows == []
    assert reached


def test_secrets_are_nowhere(opener, reached, caplog):
    caplog.set_level(logging.DEBUG)
    db = opener()
    db.execute(KAFKA)
    db.execute(f"CREATE CONNECTION inline TO KAFKA (BROKER 'b:1', SASL PASSWORD '{SECRET}')")
    source(db, opener)
    texts = [caplog.text, repr(db), repr(reached)]
    queries = (
        "SELECT * FROM reclock.objects", "SHOW CREATE SECRET pw", "SHOW CREATE CONNECTION kafka",
        "SHOW CREATE CONNECTION inline", "SHOW CREATE SOURCE s", "SHOW OBJECTS", "SHOW ALL",
        "SELECT * FROM reclock.source_status", "SELECT state, query FROM pg_stat_activity",
        "SELECT * FROM pg_class", "SELECT * FROM pg_foreign_server",
    )  # fmt: skip
    texts += [str(db.session().execute(query).rows) for query in queries]
    texts += [repr(item) for item in db._core.world.catalog.items.values()]
    for wrong in (
        f"CREATE SECRET pw AS '{SECRET}'", f"CREATE SECRET x AS '{SECRET}' more",
        "CREATE SECRET pw AS", f"CREATE CONNECTION kafka TO KAFKA (SASL PASSWORD '{SECRET}')",
        f"CREATE CONNECTION x TO KAFKA (SASL PASSWORD '{SECRET}')",
        f"CREATE CONNECTION x TO KAFKA (BROKER 'b', SASL PASSWORD '{SECRET}', GROUP ID 'x')",
    ):  # fmt: skip
        with pytest.raises(Error) as caught:
            db.execute(wrong)
        error = caught.value
        texts.append(f"{error} {error.detail} {error.hint} {error!r}")
    for step in db.plan(f"CREATE SECRET pw AS '{SECRET}';{KAFKA.split(';')[1]}"):
        assert step.action is Action.KEEP
        texts.append(step.title)
    with pytest.raises(Error) as caught:
        db.plan(f"CREATE SECRET s AS '{SECRET}'")
    texts.append(f"{caught.value} {caught.value.detail}")
    assert not [text for text in texts if SECRET in text]
    shown = db.execute("SHOW CREATE CONNECTION kafka").rows[0][1]
    assert shown == (
        "CREATE CONNECTION kafka TO KAFKA (broker = 'b:1', sasl.username = 'joe', "
        "sasl.password = SECRET pw, security.protocol = 'SASL_SSL')"
    )


def test_a_file_says_what_there_shall_be(opener):
    db = opener()
    for _ in range(2):
        for step in db.plan(KAFKA):
            if step.action is Action.CREATE:
                db.execute(step.parsed.text)
    assert db.execute("SHOW CONNECTIONS").rows == [("kafka",)]
    other = KAFKA.replace("'joe'", "'ann'")
    with pytest.raises(Error) as caught:
        db.plan(other)
    assert "sasl.username = 'ann'" in str(caught.value.detail)


def test_only_superusers_make_and_use_them(db):
    db.execute(KAFKA)
    db.execute("CREATE ROLE joe LOGIN; GRANT CREATE ON DATABASE reclock TO joe")
    with db.session("joe") as joe:
        for sql in (
            "CREATE SECRET x AS 'y'", "CREATE CONNECTION x TO KAFKA (BROKER 'b:1')",
            "ALTER SECRET pw AS 'y'", "DROP SECRET pw",
            "CREATE SOURCE s (x TEXT) FROM KAFKA CONNECTION kafka TOPIC 't' FORMAT TEXT",
        ):  # fmt: skip
            assert code(joe, sql) == "42501", sql
        assert code(joe, "SELECT * FROM pw") == "42P01"


def test_files_named_in_connections_are_not_for_clients(db, opener):
    db.execute("CREATE CONNECTION kafka TO KAFKA (BROKER 'b:1', SSL CA LOCATION '/etc/passwd')")
    with serving(db, Options(port=0, trusts_local=True)) as server:
        address = f"host=127.0.0.1 port={server.port} user=me"
        with psycopg.connect(address, autocommit=True) as client:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                client.execute(
                    "CREATE SOURCE s (x TEXT) FROM KAFKA CONNECTION kafka TOPIC 't' FORMAT TEXT"
                )
            db.execute("CREATE SECRET ca AS '/mine'; DROP CONNECTION kafka")
            db.execute("CREATE CONNECTION kafka TO KAFKA (BROKER 'b:1', SSL CA LOCATION SECRET ca)")
            topic = opener.kafka.create_topic(1)
            db.execute(
                f"CREATE SOURCE s (x TEXT) FROM KAFKA CONNECTION kafka TOPIC '{topic}' FORMAT TEXT"
            )
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                client.execute("ALTER SECRET ca AS '/etc/passwd'")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE CONNECTION x TO KAFKA (SASL USERNAME 'joe')", "42601"),
        ("CREATE CONNECTION x TO KAFKA (BROKER 'b', BROKER 'c')", "42601"),
        ("CREATE CONNECTION x TO KAFKA (BROKER 'b', GROUP ID 'c')", "22023"),
        ("CREATE CONNECTION x TO KAFKA (BROKER 'b', SASL PASSWORD SECRET nothing)", "42P01"),
        ("CREATE CONNECTION x TO KAFKA (BROKER 'b', SASL PASSWORD SECRET kafka)", "42809"),
        ("CREATE CONNECTION x TO POSTGRES (HOST 'h', SHOE SIZE 5)", "42601"),
        ("CREATE CONNECTION x TO MONGO (HOST 'h')", "42601"),
        ("CREATE CONNECTION kafka TO KAFKA (BROKER 'b')", "42P07"),
        ("CREATE SOURCE s (x TEXT) FROM KAFKA CONNECTION pw TOPIC 't' FORMAT TEXT", "42809"),
        ("CREATE SOURCE s (x TEXT) FROM KAFKA CONNECTION no TOPIC 't' FORMAT TEXT", "42P01"),
        ("CREATE SOURCE s FROM POSTGRES CONNECTION kafka PUBLICATION 'p' FOR ALL TABLES", "42809"),
        ("ALTER SECRET pw RENAME TO other", "0A000"),
        ("BEGIN; CREATE SECRET x AS 'y'", "25001"),
        ("GRANT SELECT ON pw TO public", "42809"),
    ],
)
def test_what_is_wrong_is_refused(db, sql, expected):
    db.execute(KAFKA)
    with db.session() as session:
        assert code(session, sql) == expected
