"""Texts of intervals are read, and refused, as PostgreSQL does."""

from __future__ import annotations

from random import Random

import pytest
from sqlglot import exp

from reclock.errors import Error
from reclock.sql.interval import parse_interval
from reclock.sql.parse.types import qualifier_of
from reclock.testing.postgres import running_postgres
from strategies.intervals import QUALIFIERS, interval_text

pytestmark = pytest.mark.postgres


def compare(seeds: range, each: int) -> None:
    psycopg = pytest.importorskip("psycopg")
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as theirs:
        for seed in seeds:
            random = Random(seed)
            for _ in range(each):
                text, fields = interval_text(random), random.choice(QUALIFIERS)
                space = "" if fields.startswith("(") else " "
                try:
                    asked = f"SELECT cast(%s::text as interval{space}{fields})::text"
                    if fields:
                        asked = f"SELECT cast('{text}' as interval{space}{fields})::text"
                    (wanted,) = theirs.execute(asked, [] if fields else [text]).fetchone()
                except psycopg.Error as error:
                    wanted = error.sqlstate
                qualifier = qualifier_of(exp.Var(this=fields) if fields else None)
                try:
                    found = str(parse_interval(text, qualifier))
                except Error as error:
                    found = error.code
                assert found == wanted, (seed, text, fields)


def test_a_few_texts():
    compare(range(1), 1_500)


@pytest.mark.slow(seconds=120)
def test_many_texts():
    compare(range(1, 41), 5_000)
