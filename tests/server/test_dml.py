"""Writes that give rows back, and upserts, by real drivers: psycopg, SQLAlchemy."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database


@pytest.fixture(scope="module")
def port(db: Database) -> Iterator[int]:
    db.execute("CREATE TABLE up (k INT PRIMARY KEY, a INT NOT NULL, s TEXT)")
    with serving(db, Options(port=0, trusts_local=True, grace=1)) as server:
        yield server.port


@pytest.fixture
def connection(port: int) -> Iterator[psycopg.Connection]:
    with psycopg.connect(f"host=127.0.0.1 port={port} user=reclock dbname=reclock") as made:
        made.execute("DELETE FROM up")
        made.commit()
        yield made


def test_rows_come_before_the_tag(connection: psycopg.Connection) -> None:
    found = connection.execute(
        "INSERT INTO up VALUES (%s, %s, %s), (2, 5, NULL) RETURNING k, a, s", (3, 4, "x")
    )
    assert found.statusmessage == "INSERT 0 2"
    assert found.description is not None
    assert [column.name for column in found.description] == ["k", "a", "s"]
    assert found.fetchall() == [(3, 4, "x"), (2, 5, None)]
    changed = connection.execute("UPDATE up SET a = a + 1 WHERE k = %s RETURNING a", (2,))
    assert (changed.statusmessage, changed.fetchone()) == ("UPDATE 1", (6,))
    merged = connection.execute(
        "MERGE INTO up USING (VALUES (2), (7)) AS v (k) ON v.k = up.k WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT VALUES (v.k, 0) RETURNING merge_action(), up.k"
    )
    assert sorted(merged.fetchall()) == [("DELETE", 2), ("INSERT", 7)]
    assert merged.statusmessage == "MERGE 2"
    gone = connection.execute("DELETE FROM up RETURNING k", binary=True)
    assert sorted(gone.fetchall()) == [(3,), (7,)]
    none = connection.execute("DELETE FROM up RETURNING k")
    assert (none.statusmessage, none.fetchall()) == ("DELETE 0", [])


def test_a_statement_is_described(connection: psycopg.Connection) -> None:
    connection.prepare_threshold = 0
    for k in (1, 2, 1):
        found = connection.execute(
            "INSERT INTO up VALUES (%s, 1) ON CONFLICT (k) DO UPDATE SET a = up.a + excluded.a"
            " RETURNING k, a",
            (k,),
        )
        assert found.fetchone() is not None
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO up VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING k",
            [(5, 1), (1, 1), (6, 1)],
            returning=True,
        )
        given = []
        while True:
            given += cursor.fetchall()
            if not cursor.nextset():
                break
    assert given == [(5,), (6,)]


def test_many_sessions_count_in_one_row(port: int, connection: psycopg.Connection) -> None:
    address = f"host=127.0.0.1 port={port} user=reclock dbname=reclock"
    sql = "INSERT INTO up VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET a = up.a + 1"
    failed: list[BaseException] = []

    def count(*, block: bool) -> None:
        with psycopg.connect(address, autocommit=not block) as one:
            for _ in range(5):
                while True:
                    try:
                        one.execute(sql)
                        one.commit()
                        break
                    except psycopg.errors.SerializationFailure:
                        one.rollback()
                    except BaseException as error:
                        failed.append(error)
                        raise

    threads = [threading.Thread(target=count, kwargs={"block": at % 2 == 0}) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert connection.execute("SELECT a FROM up WHERE k = 1").fetchone() == (20,)


class _Base(DeclarativeBase):
    pass


class _Thing(_Base):
    __tablename__ = "things"
    k: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    a: Mapped[int]


def test_sqlalchemy(port: int) -> None:
    engine = sa.create_engine(f"postgresql+psycopg://reclock@127.0.0.1:{port}/reclock")
    try:
        _Base.metadata.create_all(engine)
        with Session(engine) as session:
            session.add_all([_Thing(k=1, a=1), _Thing(k=2, a=2)])
            session.commit()
            made = insert(_Thing).values([{"k": 2, "a": 5}, {"k": 3, "a": 6}])
            upsert = made.on_conflict_do_update(
                index_elements=[_Thing.k], set_={"a": _Thing.a + made.excluded.a}
            ).returning(_Thing)
            found = session.scalars(upsert, execution_options={"populate_existing": True}).all()
            assert [(thing.k, thing.a) for thing in found] == [(2, 7), (3, 6)]
            session.commit()
            changed = session.execute(
                sa.update(_Thing).where(_Thing.k < 3).values(a=0).returning(_Thing.k)
            )
            assert sorted(changed.scalars()) == [1, 2]
            session.commit()
    finally:
        engine.dispose()
