"""Moments in the zones of sessions, against PostgreSQL: text in and out, fields, casts, arithmetic.

Each zone is set with SET TIME ZONE on both sides; what is asked is one query over a table of edges,
days on which clocks change among them, by real Spark, and the same through the model. Values are
compared as text on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import reclock
from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reclock.spark.session import Spark

pytestmark = pytest.mark.postgres

ZONES = [
    "'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'Australia/Lord_Howe'", "'utc'",
    "'America/St_Johns'", "-7", "5.5", "'UTC-2'", "'<-03>+03'", "INTERVAL '-08:30' HOUR TO MINUTE",
    "'America/Sao_Paulo'", "'Europe/London'", "'Pacific/Apia'",
]  # fmt: skip

LOCAL = [
    "2026-03-29 01:59:59.999999", "2026-03-29 02:00", "2026-03-29 02:30:00.5", "2026-03-29 03:00",
    "2026-10-25 01:30", "2026-10-25 02:00", "2026-10-25 02:59:59", "2026-10-25 03:00",
    "2026-03-08 02:30", "2026-11-01 01:30", "2026-04-05 01:45", "2026-10-04 02:15",
    "2024-02-29 12:00", "2024-12-31 23:59:59.123456", "2025-01-01 00:00", "1999-12-31 18:30",
    "1970-01-01 00:00", "1950-06-01 00:00", "2011-12-30 12:00", "2060-07-01 06:07:08",
]  # fmt: skip

EXPRESSIONS = [
    "at", "at::text", "at::date", "at::timestamp", "local::timestamptz", "day::timestamptz",
    "local::text::timestamptz", "(local::text || '+03')::timestamptz", "day::text::timestamptz",
    *(f"date_trunc('{f}', at)" for f in
      ("second", "minute", "hour", "day", "week", "month", "quarter", "year")),
    *(f"extract({f} from at)::numeric(20,6)::text" for f in
      ("year", "month", "day", "hour", "minute", "dow", "doy", "week", "isoyear", "epoch")),
    "to_char(at, 'YYYY-MM-DD HH24:MI:SS.US')",
    "at + interval '1 day'", "at + interval '1 month -1 day 3 hours'", "at - interval '1 day'",
    "at - interval '1 hour'", "interval '1 year' + at", "at + interval '24 hours'",
    "age(at, '2000-01-01')", "at - timestamptz '2000-01-01'", "at < local", "at = local",
    "day > at", "at AT TIME ZONE 'Asia/Tokyo'", "local AT TIME ZONE 'Asia/Tokyo'",
    "at BETWEEN '2026-01-01' AND '2026-03-29 03:00'", "greatest(at, local)",
    "concat(at, '!')", "coalesce(NULL, at)::date", "CASE WHEN at IS NULL THEN local ELSE at END",
    "nullif(at, timestamptz '2026-10-25 02:00')",
]  # fmt: skip

CONSTANTS = [
    "'2026-07-01 12:00'::timestamptz", "'2026-01-01 12:00+05:30'::timestamptz",
    "timestamptz '2026-10-25 02:30'", "timestamptz '2026-03-29 02:30'",
    "timestamptz '2026-01-01 12:00 Europe/Berlin'", "timestamptz '2026-07-01 12:00 EST5EDT'",
    "'2026-07-01'::date::timestamptz", "'2026-07-01 23:30Z'::timestamptz::date",
    "ARRAY['2026-07-01 12:00'::timestamptz]", "timestamptz '2026-07-01 12:00Z'",
    "timestamptz '1880-01-01 00:00Z'", "current_date = now()::date",
    "localtimestamp = now()::timestamp", "current_setting('timezone')",
]  # fmt: skip


@pytest.fixture(scope="module")
def theirs() -> Iterator[psycopg.Connection[Any]]:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        prepare(connection)
        yield connection


def prepare(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE moments (id INT, at TIMESTAMPTZ, local TIMESTAMP, day DATE)")
    rows = ", ".join(f"({n}, '{t}Z', '{t}', '{t[:10]}')" for n, t in enumerate(LOCAL))
    connection.execute(f"INSERT INTO moments VALUES {rows}, (99, NULL, NULL, NULL)")


def texts(connection: psycopg.Connection[Any], query: str) -> list[tuple[str | None, ...]]:
    """Return an answer as the texts that came over the wire."""
    result = connection.execute(query).pgresult
    assert result is not None
    return [
        tuple(
            None if (v := result.get_value(row, column)) is None else v.decode()
            for column in range(result.nfields)
        )
        for row in range(result.ntuples)
    ]


def same(ours: psycopg.Connection[Any], theirs: psycopg.Connection[Any], query: str) -> None:
    found, wanted = texts(ours, query), texts(theirs, query)
    names = query.removeprefix("SELECT ").split(" /**/, ")
    for left, right in zip(found, wanted, strict=True):
        wrong = [(n, a, b) for n, a, b in zip(names, left, right, strict=True) if a != b]
        assert not wrong, left[0]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[psycopg.Connection[Any]]:
    with (
        Database(tmp_path / "state", ModelEngine(), background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
        psycopg.connect(
            host="127.0.0.1", port=server.port, user="me", dbname="reclock", autocommit=True
        ) as connection,
    ):
        prepare(connection)
        yield connection


@pytest.fixture(scope="module")
def computed(
    tmp_path_factory: pytest.TempPathFactory, spark: Spark
) -> Iterator[psycopg.Connection[Any]]:
    assert spark.session.range(1).count() == 1
    with (
        reclock.open(tmp_path_factory.mktemp("zones") / "state", background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
        psycopg.connect(
            host="127.0.0.1", port=server.port, user="me", dbname="reclock", autocommit=True
        ) as connection,
    ):
        prepare(connection)
        connection.execute("SET statement_timeout = '10min'")
        yield connection


_SLOW = [pytest.param(zone, marks=pytest.mark.slow(seconds=8)) for zone in ZONES[2:]]


@pytest.mark.spark
@pytest.mark.parametrize("zone", [*ZONES[:2], *_SLOW])
def test_moments_in_zones(
    computed: psycopg.Connection[Any], theirs: psycopg.Connection[Any], zone: str
) -> None:
    for connection in (computed, theirs):
        connection.execute(f"SET TIME ZONE {zone}")
    assert texts(computed, "SHOW timezone") == texts(theirs, "SHOW timezone")
    asked = " /**/, ".join(["id", *EXPRESSIONS])
    same(computed, theirs, f"SELECT {asked} FROM moments ORDER BY id")
    same(computed, theirs, "SELECT " + " /**/, ".join(CONSTANTS))


@pytest.mark.parametrize("zone", ZONES)
def test_stored_and_shown(
    served: psycopg.Connection[Any], theirs: psycopg.Connection[Any], zone: str
) -> None:
    """Text in and out without a job: literals, parameters, COPY, look-ups, rows."""
    for connection in (served, theirs):
        connection.execute("DROP TABLE IF EXISTS stored")
        connection.execute("CREATE TABLE stored (id INT PRIMARY KEY, at TIMESTAMPTZ)")
        connection.execute(f"SET TIME ZONE {zone}")
        for n, local in enumerate(LOCAL):
            connection.execute(f"INSERT INTO stored VALUES ({n}, '{local}')")
            connection.execute("INSERT INTO stored VALUES (%s, %s)", (100 + n, local))
        with connection.cursor().copy("COPY stored FROM STDIN") as copy:
            for n, local in enumerate(LOCAL):
                copy.write(f"{200 + n}\t{local}\n")
        with connection.cursor().copy("COPY stored FROM STDIN (FORMAT csv)") as copy:
            for n, local in enumerate(LOCAL):
                copy.write(f"{300 + n},{local}\n")
    for query in ("SELECT * FROM stored ORDER BY id", "SELECT at FROM stored WHERE id = 101"):
        assert texts(served, query) == texts(theirs, query)
    for form in ("text", "csv"):
        asked = f"COPY (SELECT * FROM stored ORDER BY id) TO STDOUT (FORMAT {form})"
        rows = []
        for connection in (served, theirs):
            with connection.cursor().copy(asked) as copy:
                rows.append(b"".join(map(bytes, copy)))
        assert rows[0] == rows[1]
    wanted = "SELECT at FROM stored WHERE id = 3"
    for connection in (served, theirs):
        connection.execute("BEGIN")
        connection.execute("SET LOCAL TIME ZONE 'Asia/Tokyo'")
    assert texts(served, wanted) == texts(theirs, wanted)
    for connection in (served, theirs):
        connection.execute("ROLLBACK")
    assert texts(served, wanted) == texts(theirs, wanted)


def test_names_that_are_none(
    served: psycopg.Connection[Any], theirs: psycopg.Connection[Any]
) -> None:
    for name in ("nowhere", "Europe/Atlantis"):
        for connection in (served, theirs):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                connection.execute(f"SET TIME ZONE '{name}'")


def test_drivers_are_told(served: psycopg.Connection[Any]) -> None:
    served.execute("SET TIME ZONE 'Europe/Berlin'")
    assert served.info.parameter_status("TimeZone") == "Europe/Berlin"
    assert str(served.info.timezone) == "Europe/Berlin"
    found = served.execute("SELECT timestamptz '2026-07-01 12:00'").fetchone()
    assert found is not None
    assert found[0].isoformat() == "2026-07-01T12:00:00+02:00"


def test_what_is_kept_is_in_utc(served: psycopg.Connection[Any]) -> None:
    heard: list[str] = []
    served.add_notice_handler(lambda d: heard.append(str(d.message_primary)))
    served.execute("SET TIME ZONE 'Europe/Berlin'")
    served.execute("CREATE MATERIALIZED VIEW days AS SELECT id, at::date AS day FROM moments")
    served.execute("CREATE VIEW seen AS SELECT id, at::date AS day FROM moments")
    served.execute("CREATE VIEW ids AS SELECT id FROM moments")
    assert heard == [
        "times of day in days are those of UTC",
        "times of day in seen are those of UTC",
    ]
    late = "SELECT day FROM {} WHERE id = 13"
    assert texts(served, late.format("days")) == [("2024-12-31",)]
    assert texts(served, late.format("seen")) == [("2024-12-31",)]
    assert texts(served, "SELECT at::date FROM moments WHERE id = 13") == [("2025-01-01",)]


def test_a_transaction_keeps_the_zone_of_each_statement(served: psycopg.Connection[Any]) -> None:
    """Its statements run again at COMMIT, each in the zone that it ran in."""
    served.execute("CREATE TABLE z (id INT PRIMARY KEY, at TIMESTAMPTZ, n INT)")
    served.execute("INSERT INTO z VALUES (0, NULL, 0)")
    info = served.info
    with psycopg.connect(host=info.host, port=info.port, user="me", autocommit=True) as other:
        served.execute("BEGIN")
        served.execute("SET TIME ZONE 'Asia/Tokyo'")
        served.execute("UPDATE z SET n = n + 1, at = local FROM moments m WHERE m.id = 12")
        served.execute("SET TIME ZONE 'America/New_York'")
        other.execute("UPDATE z SET n = n + 10")
        served.execute("COMMIT")
    served.execute("SET TIME ZONE 'UTC'")
    assert texts(served, "SELECT n, at FROM z") == [("11", "2024-02-29 03:00:00+00")]
