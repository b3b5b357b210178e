from __future__ import annotations

from typing import TYPE_CHECKING

from datadriven import Case, parse_bounds
from reclock.time.select import AsOf, AsOfAtLeast, Isolation, select
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable


def dispatch(case: Case) -> str:
    as_of: AsOf | AsOfAtLeast | None = None
    if "as_of" in case.options:
        as_of = AsOf(Timestamp(int(case.options["as_of"])))
    if "at_least" in case.options:
        as_of = AsOfAtLeast(Timestamp(int(case.options["at_least"])))
    read_ts = case.options.get("oracle")
    choice = select(
        [parse_bounds(line) for line in case.input],
        isolation=Isolation(case.directive.replace("-", " ")),
        read_ts=None if read_ts is None else Timestamp(int(read_ts)),
        as_of=as_of,
    )
    return choice.explain()


def test_select(datadriven: Callable[..., None]) -> None:
    datadriven("select.txt", dispatch)
