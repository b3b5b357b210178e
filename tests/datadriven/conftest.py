from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import datadriven as runner

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    # Known when this directory is named on the command line: pytest tests/datadriven --rewrite
    parser.addoption("--rewrite", action="store_true", help="record what the cases say now")


@pytest.fixture
def datadriven(
    request: pytest.FixtureRequest,
) -> Callable[[str, Callable[[runner.Case], str]], None]:
    rewrite = bool(request.config.getoption("--rewrite", default=False))

    def run(name: str, dispatch: Callable[[runner.Case], str]) -> None:
        runner.run(HERE / name, dispatch, rewrite=rewrite)

    return run
