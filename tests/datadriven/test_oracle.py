from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from reclock.time.oracle import OracleState, apply_write, peek_write, read, write
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from datadriven import Case


class Script:
    """One oracle; each line of a case is a call, a restart happens between cases."""

    def __init__(self) -> None:
        self.state = OracleState()

    def dispatch(self, case: Case) -> str:
        if case.directive == "new":
            self.state = OracleState()
        self.state = pickle.loads(pickle.dumps(self.state))
        now = int(case.options["now"])
        return "\n".join(f"{line}: {self.call(line, now)}" for line in case.input)

    def call(self, line: str, now: int) -> Timestamp | str:
        match line.split():
            case ["write"]:
                self.state, time = write(self.state, now)
                return time
            case ["apply", time]:
                self.state = apply_write(self.state, Timestamp(int(time)), now)
                return f"read_ts {self.state.read_ts} write_ts {self.state.write_ts}"
            case ["read"]:
                return read(self.state)
            case ["peek"]:
                return peek_write(self.state)
        raise AssertionError(line)


def test_oracle(datadriven: Callable[..., None]) -> None:
    datadriven("oracle.txt", Script().dispatch)
