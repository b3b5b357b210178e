from __future__ import annotations

from typing import TYPE_CHECKING

from datadriven import Case, parse_frontier
from reclock.time.expiry import DataflowKind, Dependency, Lifetime, check, decide
from reclock.time.timeline import parse_timeline

if TYPE_CHECKING:
    from collections.abc import Callable


def dispatch(case: Case) -> str:
    if case.directive == "check":
        frontier, expiration = (parse_frontier(case.options[o]) for o in ("frontier", "expiration"))
        check(frontier, expiration, dropped="whole" not in case.args)
        return "ok"
    timeline = case.options.get("timeline", "EpochMilliseconds")
    decision = decide(
        DataflowKind(case.directive.replace("-", " ")),
        None if timeline == "none" else parse_timeline(timeline),
        [dependency(line) for line in case.input],
        Lifetime(int(case.options["start"]), int(case.options["offset"])),
        parse_frontier(case.options.get("until", "{}")),
        scheduled="scheduled" in case.args,
    )
    lines = [f"expiration {decision.expiration} until {decision.until}"]
    if decision.reason is not None:
        lines.append(f"off: {decision.reason}")
    return "\n".join(lines)


def dependency(line: str) -> Dependency:
    name, upper, *schedule = line.split()
    return Dependency(name, parse_frontier(upper.removeprefix("upper=")), bool(schedule))


def test_expiry(datadriven: Callable[..., None]) -> None:
    datadriven("expiry.txt", dispatch)
