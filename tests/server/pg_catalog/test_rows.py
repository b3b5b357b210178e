from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock.ids import ObjectId
from reclock.server.pg_catalog import oids
from reclock.server.pg_catalog.lookups import LOOKUP_ROWS
from reclock.server.pg_catalog.objects import Objects
from reclock.server.pg_catalog.rows import ROWS
from reclock.server.pg_catalog.types import KINDS
from reclock.session.database import Database
from reclock.sql.pg.functions import LOOKUPS
from reclock.sql.pg.oid import OIDS
from reclock.sql.pg.relations import PG_RELATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MADE = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'it''s', price NUMERIC(12,2),
                n INT DEFAULT -1, ok BOOLEAN DEFAULT true, at DATE DEFAULT DATE '2026-01-01');
CREATE TABLE loose (a INT, b TEXT, PRIMARY KEY (a) NOT ENFORCED);
CREATE TABLE t_pkey (a INT);
CREATE VIEW v AS SELECT id, n FROM t;
CREATE MATERIALIZED VIEW m AS SELECT n, count(*) AS c FROM t GROUP BY n;
CREATE INDEX i ON m (c);
CREATE SOURCE g FROM LOAD GENERATOR counter;
CREATE ROLE joe; GRANT SELECT ON t TO joe; GRANT CREATE ON DATABASE reclock TO joe
"""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], Database]]:
    found: list[Database] = []

    def again() -> Database:
        for db in found:
            db.close()
        found.append(Database(tmp_path / "state", ModelEngine(), background=False))
        return found[-1]

    yield again
    for db in found:
        db.close()


def objects(db: Database) -> Objects:
    world = db._core.world
    return Objects(world.catalog, world.roles, world.settings)


def test_every_relation_has_its_columns_and_every_number_is_one_thing(
    opened: Callable[[], Database],
) -> None:
    db = opened()
    db.execute(MADE)
    known = objects(db)
    assert ROWS.keys() <= PG_RELATIONS.keys()
    assert LOOKUP_ROWS.keys() == LOOKUPS.keys()
    for place, rows in ROWS.items():
        wrong = {n for row in rows(known) for n in row} - PG_RELATIONS[place].columns.keys()
        if place[1] not in {"pg_authid", "constraint_column_usage", "constraint_table_usage"}:
            assert not wrong, (place, wrong)
    for name in ("pg_class", "pg_type", "pg_proc", "pg_constraint", "pg_attrdef", "pg_namespace",
                 "pg_roles", "pg_rewrite", "pg_opclass", "pg_collation"):  # fmt: skip
        numbers = Counter(row["oid"] for row in ROWS["pg_catalog", name](known))
        assert numbers
        assert max(numbers.values()) == 1, name
    for schema, name in PG_RELATIONS:
        found = db.execute(f"SELECT * FROM {schema}.{name}")
        assert list(found.columns) == list(PG_RELATIONS[schema, name].columns)


def test_numbers_stay_over_a_restart(opened: Callable[[], Database]) -> None:
    db = opened()
    db.execute(MADE)
    text = "SELECT oid, relname FROM pg_class UNION SELECT oid, rolname FROM pg_roles ORDER BY 1"
    before = db.execute(text).rows
    assert opened().execute(text).rows == before
    assert oids.of_object(ObjectId("u3")) - oids.of_object(ObjectId("u2")) > 3


def test_keys_and_defaults(opened: Callable[[], Database]) -> None:
    db = opened()
    db.execute(MADE)
    assert db.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated"
        " FROM pg_constraint ORDER BY 1"
    ).rows == [
        ("loose", "loose_pkey", "PRIMARY KEY (a) NOT ENFORCED", False),
        ("t", "t_pkey1", "PRIMARY KEY (id)", True),
    ]
    assert db.execute("SELECT indexname, indexdef FROM pg_indexes ORDER BY 1").rows == [
        ("i", "CREATE INDEX i ON public.m USING btree (c)"),
        ("loose_pkey", "CREATE UNIQUE INDEX loose_pkey ON public.loose USING btree (a)"),
        ("t_pkey1", "CREATE UNIQUE INDEX t_pkey1 ON public.t USING btree (id)"),
    ]
    assert db.execute(
        "SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute"
        " ON attrelid = adrelid AND attnum = adnum ORDER BY attnum"
    ).rows == [("name", "'it''s'::text"), ("n", "-1"), ("ok", "true"), ("at", "'2026-01-01'::date")]


def test_owners_and_privileges(opened: Callable[[], Database]) -> None:
    db = opened()
    db.execute(MADE)
    with db.session("joe") as joe:
        joe.execute("CREATE TABLE mine (a INT)")
        asked = (
            "SELECT has_table_privilege('mine', 'DELETE'), has_table_privilege('t', 'SELECT'),"
            " has_table_privilege('t', 'INSERT, SELECT'), has_table_privilege('t', 'INSERT'),"
            " has_table_privilege('owner', 't', 'DELETE'),"
            " has_database_privilege('reclock', 'CREATE'), pg_has_role('owner', 'MEMBER')"
        )
        assert joe.execute(asked).rows == [(True, True, True, False, True, True, False)]
        assert joe.execute(
            "SELECT relname FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
        ).rows == [("mine",)]


def test_types_are_those_of_the_wire() -> None:
    for kind, (oid, array, size) in OIDS.items():
        assert KINDS[oid].array == array, kind
        assert KINDS[array].element == oid
        if size > 0:
            assert KINDS[oid].length == size
