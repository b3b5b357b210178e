"""What facts say of sources and sinks, which must be what SQL says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.session.database import Database


def assert_facts_agree(db: Database) -> None:
    """Compare the states and lags of ``Facts`` with those of the system relations.

    In a database that ticks by itself the two may look at different moments: one of a few
    comparisons has to find them the same.
    """
    for _ in range(50):
        told = db.execute("SELECT source, state, lag_ms FROM reclock.source_status").rows
        sinks = db.execute("SELECT sink, state FROM reclock.sink_status").rows
        found = [(x.name, x.state, x.lag_ms) for x in db.facts.sources()]
        states = [(x.name, x.state) for x in db.facts.sinks()]
        still = db._core.loop is None
        if not still:  # the clock goes on between two looks
            told, found = ([row[:2] for row in rows] for rows in (told, found))
        if (sorted(told), sorted(sinks)) == (sorted(found), sorted(states)):
            return
        assert not still, (told, found, sinks, states)
    raise AssertionError((told, found, sinks, states))
