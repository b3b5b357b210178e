from __future__ import annotations

from typing import TYPE_CHECKING

from datadriven import Case, parse_frontier
from reclock.ids import HolderId, ObjectId
from reclock.time.holds import Hold, Holds

if TYPE_CHECKING:
    from collections.abc import Callable


class Script:
    """One ledger for the file; a holder is also the name of its token."""

    def __init__(self) -> None:
        self.holds = Holds()
        self.tokens: dict[str, Hold] = {}

    def dispatch(self, case: Case) -> str:
        name, *objects = case.args or ("",)
        to = parse_frontier(case.options["to"]) if "to" in case.options else None
        match case.directive:
            case "track":
                self.holds.track(ObjectId(name), parse_frontier(case.options["since"]))
            case "acquire":
                ids = [ObjectId(o) for o in objects]
                self.tokens[name] = self.holds.acquire(HolderId(name), ids, to)
            case "downgrade":
                assert to is not None
                self.tokens[name].downgrade(to)
            case "release":
                self.tokens[name].release()
            case "advance":
                assert to is not None
                return f"{name}: since {self.holds.advance(ObjectId(name), to)}"
            case "forget":
                self.holds.forget(ObjectId(name))
            case _:
                assert case.directive == "show"
        rows = [f"{row.object} {row.holder} {row.since}" for row in self.holds.rows()]
        return "\n".join(rows) or "no holds"


def test_holds(datadriven: Callable[..., None]) -> None:
    datadriven("holds.txt", Script().dispatch)
