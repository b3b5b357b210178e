"""Pools of connections, and what they say between two users."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Database(tmp_path_factory.mktemp("pools") / "state", ModelEngine())
    made.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    made.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
    with made, serving(made, Options(port=0, trusts_local=True, grace=1)) as server:
        yield server


@pytest.fixture
def where(server: Server) -> str:
    return f"host=127.0.0.1 port={server.port} user=me dbname=reclock"


def test_asyncpg_pool(server: Server) -> None:
    async def use() -> None:
        pool = await asyncpg.create_pool(
            host="127.0.0.1", port=server.port, user="me", database="reclock", ssl=False,
            min_size=1, max_size=1, server_settings={"application_name": "pooled"},
        )  # fmt: skip
        async with pool:
            async with pool.acquire() as connection:
                await connection.execute("SET statement_timeout = '7s'")
                await connection.execute("SET application_name = 'other'")
                assert await connection.fetchval("SELECT count(*) FROM t WHERE a > $1", 0) == 2
                async with connection.transaction(
                    isolation="serializable", readonly=True, deferrable=True
                ):
                    assert await connection.fetchval("SELECT a FROM t WHERE a = $1", 2) == 2
            async with pool.acquire() as connection:  # the same one: there are no others
                assert await connection.fetchval("SHOW statement_timeout") == "60s"
                assert await connection.fetchval("SHOW application_name") == "pooled"
                transaction = connection.transaction()
                await transaction.start()
                with pytest.raises(asyncpg.UndefinedTableError):
                    async with connection.transaction():
                        await connection.execute("SELECT * FROM nowhere")
                assert await connection.fetchval("SELECT 1") == 1
                await transaction.rollback()
                assert await connection.fetchval("SELECT 1") == 1

    asyncio.run(use())


def test_psycopg_pool(where: str) -> None:
    def reset(connection: psycopg.Connection[Any]) -> None:
        connection.execute("DISCARD ALL")

    with psycopg_pool.ConnectionPool(
        where, min_size=1, max_size=1, kwargs={"autocommit": True, "prepare_threshold": 0},
        reset=reset, check=psycopg_pool.ConnectionPool.check_connection, timeout=60,
    ) as pool:  # fmt: skip
        for _ in range(2):
            with pool.connection() as connection:
                assert connection.execute("SHOW statement_timeout").fetchone() == ("60s",)
                connection.execute("SET statement_timeout = '7s'")
                query = "SELECT count(*) FROM t WHERE a > %s"
                assert connection.execute(query, (0,)).fetchone() == (2,)


def test_psycopg_forgets_statements_that_it_prepared(where: str) -> None:
    with psycopg.connect(where, autocommit=True, prepare_threshold=0) as connection:
        connection.prepared_max = 1  # so each one that is new deallocates the one before
        for number in range(3):
            query = f"SELECT a + {number} FROM t WHERE a = %s"
            assert connection.execute(query, (1,)).fetchone() == (1 + number,)  # type: ignore[call-overload]
        connection.execute("DEALLOCATE ALL")


def test_psycopg_transactions(where: str) -> None:
    with psycopg.connect(where, autocommit=True) as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        connection.read_only = True
        connection.deferrable = True
        with connection.transaction():
            assert connection.execute("SELECT max(a) FROM t").fetchone() == (2,)
            with pytest.raises(psycopg.errors.UndefinedTable), connection.transaction():
                connection.execute("SELECT * FROM nowhere")
            assert connection.execute("SELECT max(a) FROM t").fetchone() == (2,)
            raise psycopg.Rollback
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connection.transaction():
            connection.execute("INSERT INTO t VALUES (9)")
        assert connection.execute("SELECT max(a) FROM t").fetchone() == (2,)


def test_sqlalchemy_engines(server: Server) -> None:
    for level in ("AUTOCOMMIT", "SERIALIZABLE", "READ COMMITTED"):
        engine = sa.create_engine(
            f"postgresql+psycopg://me@127.0.0.1:{server.port}/reclock",
            use_native_hstore=False, isolation_level=level, pool_size=1, max_overflow=0,
            pool_pre_ping=True,
        )  # fmt: skip
        for _ in range(2):
            with engine.connect() as connection:
                assert connection.execute(sa.text("SELECT max(a) FROM t")).scalar() == 2
                assert connection.execute(sa.text("SELECT version()")).scalar()
        engine.dispose()


def test_sqlalchemy_over_asyncpg(server: Server) -> None:
    async def use() -> None:
        engine = create_async_engine(
            f"postgresql+asyncpg://me@127.0.0.1:{server.port}/reclock", pool_pre_ping=True
        )
        async with engine.connect() as own:
            alone = await own.execution_options(isolation_level="AUTOCOMMIT")
            await alone.execute(
                sa.text(
                    "CREATE TABLE async_ (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(9,2))"
                )
            )
            await alone.execute(sa.text("CREATE INDEX async_names ON async_ (name, id)"))
        meta = sa.MetaData()
        async with engine.connect() as connection:
            await connection.run_sync(meta.reflect)
        table = meta.tables["async_"]
        assert [c.name for c in table.primary_key] == ["id"]
        (index,) = table.indexes
        assert [c.name for c in index.columns] == ["name", "id"]
        assert repr(table.c.price.type) == "NUMERIC(precision=9, scale=2)"
        rows = [{"id": n, "name": f"n{n}", "price": Decimal(n) / 4} for n in range(3)]
        async with engine.begin() as connection:
            await connection.execute(sa.insert(table), rows)
        async with engine.connect() as connection:
            begun = await connection.begin()
            await connection.execute(sa.insert(table), [{"id": 9, "name": "gone"}])
            await begun.rollback()
        async with engine.connect() as connection:
            query = sa.select(table).where(table.c.id.in_([1, 2, 9])).order_by(table.c.id)
            found = (await connection.execute(query)).all()
            assert found == [(1, "n1", Decimal("0.25")), (2, "n2", Decimal("0.50"))]
            again = sa.select(sa.func.count()).select_from(table)
            assert (await connection.execute(again)).scalar() == 3
            streamed = await connection.stream(sa.select(table.c.name).order_by(table.c.id))
            assert [name async for (name,) in streamed] == ["n0", "n1", "n2"]
        async with engine.connect() as connection:
            with pytest.raises(sa.exc.IntegrityError):
                await connection.execute(sa.insert(table), rows[:1])
        async with AsyncSession(engine) as session:
            assert (await session.scalars(sa.select(table.c.name))).first() is not None
        await engine.dispose()

    asyncio.run(use())


def test_options_of_the_startup_message(where: str) -> None:
    options = "-c statement_timeout=5s --application-name=my\\ app"
    with psycopg.connect(where, options=options, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '7s'; RESET ALL")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("5s",)
        assert connection.execute("SHOW application_name").fetchone() == ("my app",)
