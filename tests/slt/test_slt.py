"""Every script, three ways: SELECT, a view created late, a view that saw it all.

A script is one database per way; its queries become views of the same database, so a tick
keeps all of them at once. The last way inserts the rows, deletes them all, and inserts
them again, with a tick after each statement.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reclock
from slt import Script, parse, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database

pytestmark = pytest.mark.spark

SCRIPTS = sorted(Path(__file__).parent.glob("*.slt"))


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def script(request: pytest.FixtureRequest) -> Script:
    return parse(request.param.read_text())


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    clock = reclock.ManualClock(1_000)
    with reclock.open(tmp_path / "state", clock=clock, background=False) as db:
        yield db


def create_views(db: Database, script: Script) -> None:
    """Create a view per query; names that repeat are no columns of a view, so rename them."""
    for at, block in enumerate(script.of("query")):
        names = ", ".join(
            f"c{i}" for i in range(max([a.count(" | ") for a in block.answer], default=0) + 1)
        )
        options = "WITH (allow_full_recompute = true)"  # scripts are about answers
        query = f"SELECT * FROM ({block.sql}) AS q ({names})"
        db.execute(f"CREATE MATERIALIZED VIEW q{at} {options} AS {query}")


def differing(db: Database, script: Script, *, views: bool) -> list[str]:
    """Return what is not as the script says, for all queries at once."""
    wrong = []
    for at, block in enumerate(script.of("query")):
        ordered = block.argument == "ordered" and not views
        result = db.execute(f"SELECT * FROM q{at}" if views else block.sql)
        expected = block.answer if ordered else tuple(sorted(block.answer))
        got = shown(result.rows, ordered=ordered)
        if got != expected:
            wrong.append(f"line {block.line}: {block.sql}\n  expected {expected}\n  got      {got}")
    return wrong


def test_one_shot_and_late_views(db: Database, script: Script) -> None:
    for block in (*script.of("table"), *script.of("rows")):
        db.execute(block.sql)
    assert not differing(db, script, views=False)
    for block in script.of("error"):
        with pytest.raises(reclock.Error) as caught:
            db.execute(block.sql)
        assert caught.value.code == block.argument, f"line {block.line}: {block.sql}"
    create_views(db, script)
    assert not differing(db, script, views=True)


def test_early_views(db: Database, script: Script) -> None:
    names = []
    for block in script.of("table"):
        names.append(block.sql.split()[2])
        db.execute(block.sql)
    create_views(db, script)
    for _ in range(2):
        for name in names:
            db.execute(f"DELETE FROM {name}")
        db.tick()
        for block in script.of("rows"):
            db.execute(block.sql)
            db.tick()
    assert not differing(db, script, views=True)
