"""Every store keeps the contract of ``reclock.durable.store``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.store import CASES, FENCING_CASES, case_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.store.kit import Case
    from reclock.durable.store import Store


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_every_store(case: Case, reopen: Callable[[], Store]) -> None:
    case(reopen)


@pytest.mark.parametrize("case", FENCING_CASES, ids=case_name)
def test_memory_is_fenced(case: Case, memory_reopen: Callable[[], Store]) -> None:
    case(memory_reopen)


@pytest.mark.postgres
@pytest.mark.parametrize("case", FENCING_CASES, ids=case_name)
def test_postgres_is_fenced(case: Case, postgres_reopen: Callable[[], Store]) -> None:
    case(postgres_reopen)
