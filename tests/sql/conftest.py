from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import datadriven as runner
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from strategies.queries import FuzzCatalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.plan.relation import QueryPlan

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    # Known when this directory is named on the command line: pytest tests/sql --rewrite
    with suppress(ValueError):  # another directory on the command line has it already
        parser.addoption("--rewrite", action="store_true", help="record what the cases say now")


@pytest.fixture
def golden(
    request: pytest.FixtureRequest,
) -> Callable[[str, Callable[[runner.Case], str]], None]:
    rewrite = bool(request.config.getoption("--rewrite", default=False))

    def run(name: str, dispatch: Callable[[runner.Case], str]) -> None:
        runner.run(GOLDEN / f"{name}.spec", dispatch, rewrite=rewrite)

    return run


@pytest.fixture
def plan() -> Callable[[str], QueryPlan]:
    return lambda text: plan_query(parse_query(text), FuzzCatalog())
