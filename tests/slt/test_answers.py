"""The answers in the scripts are PostgreSQL's, and so are the errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from reclock.testing.postgres import running_postgres
from slt import answered_by_postgres, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.postgres

SCRIPTS = sorted(Path(__file__).parent.glob("*.slt"))
OURS = {"0A000"}
"""What we do not support is no matter of PostgreSQL."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_answers_are_postgresqls(url: str, path: Path) -> None:
    script = parse(path.read_text())
    answered = answered_by_postgres(script, url)
    for ours, theirs in zip(script.of("query"), answered.of("query"), strict=True):
        order = list if ours.argument == "ordered" else sorted
        assert order(ours.answer) == order(theirs.answer), ours.sql
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = slt")
        for block in script.of("error"):
            if block.argument in OURS:
                continue
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(block.sql)
            assert caught.value.sqlstate == block.argument, block.sql
