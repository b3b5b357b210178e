from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, make_url, text

from memory_store import MemoryDisk, MemoryStore
from reclock.durable.postgres import open_postgres
from reclock.durable.sqlite import open_sqlite
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.durable.store import Store

_schemas = count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The address of an empty database, by a schema of its own."""
    schema = f"test_{next(_schemas)}"
    url = make_url(postgres_server).set(drivername="postgresql+psycopg")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    own = url.update_query_dict({"options": f"-csearch_path={schema}"})
    return own.set(drivername="postgresql").render_as_string(hide_password=False)


class Opener:
    """Opens a state again and again; ``ghosts`` older stores stay open beside the newest."""

    def __init__(self, open_store: Callable[[], Store], *, ghosts: int) -> None:
        self._open = open_store
        self._ghosts = ghosts
        self._opened: list[Store] = []

    def __call__(self) -> Store:
        self.close(but=self._ghosts)
        store = self._open()
        self._opened.append(store)
        return store

    def close(self, but: int = 0) -> None:
        while len(self._opened) > but:
            self._opened.pop(0).close()


@pytest.fixture
def memory_reopen() -> Iterator[Opener]:
    disk = MemoryDisk()
    opener = Opener(lambda: MemoryStore(disk), ghosts=1)
    yield opener
    opener.close()


@pytest.fixture
def sqlite_reopen(tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(lambda: open_sqlite(tmp_path / "state"), ghosts=0)
    yield opener
    opener.close()


@pytest.fixture
def postgres_reopen(postgres_url: str) -> Iterator[Opener]:
    opener = Opener(lambda: open_postgres(postgres_url), ghosts=1)
    yield opener
    opener.close()


BACKENDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS)
def reopen(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.getfixturevalue(f"{request.param}_reopen")
    return opener


@pytest.fixture
def store(reopen: Opener) -> Store:
    return reopen()
