"""Settings that drivers of PostgreSQL expect: what is so anyway is accepted, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error, InvalidValue

if TYPE_CHECKING:
    from reclock.session.database import Database


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SET client_encoding TO 'utf-8'", ("client_encoding", "UTF8")),
        ("SET datestyle TO ISO", ("datestyle", "ISO, MDY")),
        ("SET TIME ZONE 'etc/utc'", ("timezone", "Etc/UTC")),
        ("SET TIME ZONE LOCAL", ("timezone", "UTC")),
        ("SET timezone TO 'europe/berlin'", ("timezone", "Europe/Berlin")),
        ("SET TIME ZONE INTERVAL '-8:00' HOUR TO MINUTE", ("timezone", "<-08>+08")),
        ("SET datestyle TO 'ISO, DMY'", ("datestyle", "ISO, DMY")),
        ("SET extra_float_digits = 3", ("extra_float_digits", "3")),
        ("SET application_name = 'x y'", ("application_name", "x y")),
        ("SET search_path TO public", ("search_path", "public")),
        ("SET standard_conforming_strings = on", ("standard_conforming_strings", "on")),
        ("SET statement_timeout = 5000", ("statement_timeout", "5s")),
        ("SET idle_session_timeout = '1 min'", ("idle_session_timeout", "1m")),
    ],
)
def test_what_drivers_set(db: Database, sql: str, shown: tuple[str, str]) -> None:
    name, value = shown
    db.execute(sql)
    assert db.execute(f"SHOW {name}").rows == [(value,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SET client_encoding TO 'latin1'",
        "SET TIME ZONE 'Europe/Atlantis'",
        "SET search_path TO elsewhere",
        "SET datestyle TO German",
        "SET extra_float_digits = many",
        "SET server_version = '9.6'",
    ],
)
def test_what_would_be_a_lie_is_refused(db: Database, sql: str) -> None:
    with pytest.raises(InvalidValue):
        db.execute(sql)


def test_the_system_has_none_of_them(db: Database) -> None:
    with pytest.raises(Error) as caught:
        db.execute("ALTER SYSTEM SET application_name = 'x'")
    assert caught.value.code == "42704"
    assert not any(name == "timezone" for name, *_ in db.execute("SHOW ALL").rows)
