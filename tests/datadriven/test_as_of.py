from __future__ import annotations

from typing import TYPE_CHECKING

from datadriven import Case, parse_bounds, parse_frontier
from reclock.time.as_of import Output, choose_as_of

if TYPE_CHECKING:
    from collections.abc import Callable


def dispatch(case: Case) -> str:
    assert case.directive == "restart"
    reads = [parse_bounds(line) for line in case.input]
    writes = [Output(name, parse_frontier(upper)) for name, upper in case.options.items()]
    return str(choose_as_of(reads, writes))


def test_as_of(datadriven: Callable[..., None]) -> None:
    datadriven("as_of.txt", dispatch)
