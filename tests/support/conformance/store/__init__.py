"""What every ``Store`` must do: see the contract in ``reclock.durable.store``.

Each case is a function of ``reopen``, which gives a store on an empty state at its first
call, and on later calls what a new process finds after the old one crashed. ``CASES`` are
for every store; ``FENCING_CASES`` for those that a second process takes over (SQLite
refuses it instead). With pytest::

    @pytest.mark.parametrize("case", CASES, ids=case_name)
    def test_conformance(case, reopen):
        case(reopen)

The cases name collections of their own, so several may share a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.store import appending, compacting, crashing, opening, racing

if TYPE_CHECKING:
    from conformance.store.kit import Case

CASES: Final[tuple[Case, ...]] = (
    *opening.CASES,
    *appending.CASES,
    *compacting.CASES,
    *crashing.CASES,
    *racing.CASES,
)

FENCING_CASES: Final[tuple[Case, ...]] = racing.FENCING_CASES


def case_name(case: Case) -> str:
    """Return how to call a case in a report."""
    return case.__name__
