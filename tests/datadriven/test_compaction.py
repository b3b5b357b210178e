from __future__ import annotations

from typing import TYPE_CHECKING

from datadriven import Case, parse_frontier
from reclock.config import parse_duration
from reclock.time.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable


def dispatch(case: Case) -> str:
    """Compact a collection step by step: each line is an upper and a limit set by holds."""
    assert case.directive == "compact"
    policy = Policy(parse_duration(case.options["window"]))
    since = parse_frontier(case.options["since"])
    lines = []
    for line in case.input:
        upper, *holds = line.split()
        permitted = parse_frontier(holds[0].removeprefix("holds=") if holds else "{}")
        since = policy.next_since(
            since, parse_frontier(upper.removeprefix("upper=")), permitted=permitted
        )
        lines.append(f"{line}: since {since}")
    return "\n".join(lines)


def test_compaction(datadriven: Callable[..., None]) -> None:
    datadriven("compaction.txt", dispatch)
