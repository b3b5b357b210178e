"""Functions of the session: the role, the database, the settings.

Their values are put into a statement before it is planned, as constants: they are the same for all
of it. So a query or a write can use them. A view or a SUBSCRIBE, which belongs to no single
session, cannot: there such a function does not exist (42883). ``now()`` and its like are such
constants too: the time of the statement, or of the transaction's begin, by the database's clock. So
a statement that writes it needs no job, and tells the same when it is run again.

Cost: nothing for a text without such a word, else a walk over the statement.

Tests: tests/session/test_functions.py.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from reclock.catalog.client_settings import SERVER_VERSION
from reclock.catalog.settings import checked
from reclock.errors import NotSupported
from reclock.session.sequence_functions import current, sequence_of
from reclock.sql import statement as s
from reclock.sql.syntax import expression as e
from reclock.sql.syntax.query import SelectItem
from reclock.sql.types import BIGINT, DATE, TEXT, TIMESTAMP, TIMESTAMPTZ
from reclock.sql.zone import tzinfo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.session.speaker import Speaker

DATABASE: Final = "reclock"
OWNER: Final = "owner"
"""Who opened the database himself, and has no role."""

SESSION_FUNCTIONS: Final[Mapping[str, Callable[[Speaker], str]]] = {
    "current_catalog": lambda _: DATABASE,
    "current_database": lambda _: DATABASE,
    "current_schema": lambda _: "public",
    "current_user": lambda session: session.role or OWNER,
    "pg_advisory_unlock_all": lambda _: "",
    "session_user": lambda session: session.role or OWNER,
    "version": lambda _: f"PostgreSQL {SERVER_VERSION}",
}
"""Functions without arguments; ``current_setting(name)`` and ``set_config(…)`` have some."""

_SETTINGS: Final = ("current_setting", "set_config")
_NUMBERS: Final = ("currval", "lastval", "nextval", "setval")
_TIMES: Final = {"now": TIMESTAMPTZ, "current_date": DATE, "localtimestamp": TIMESTAMP}
_MOMENTS: Final = (r"\bnow\s*\(", "current_timestamp", "current_date", "localtimestamp")
_WORDS: Final = re.compile(
    "|".join((*SESSION_FUNCTIONS, *_SETTINGS, *_NUMBERS, *_MOMENTS)), re.IGNORECASE
)
_ANSWERED: Final = (
    s.SelectStatement, s.Copy, s.Declare, s.ExplainPlan, s.ExplainTimestamp, s.Insert, s.Update,
    s.Delete, s.Merge, s.CreateTableAs,
)  # fmt: skip


def is_of_session(text: str) -> bool:
    """Return whether a text may have functions of the session in it."""
    return _WORDS.search(text) is not None


def with_session(statement: s.Statement, text: str, session: Speaker) -> s.Statement:
    """Return a statement with the values of the functions of the session."""
    if not isinstance(statement, _ANSWERED) or not is_of_session(text):
        return statement
    if isinstance(getattr(statement, "of", None), s.Subscribe):
        return statement
    found: s.Statement = _walked(statement, session)
    return found


def _walked(node: Any, session: Speaker | None) -> Any:
    if isinstance(node, tuple):
        return tuple(_walked(part, session) for part in node)
    if isinstance(node, e.FunctionText):
        if node.name in _TIMES and not node.arguments:
            return e.CastText(_moment(node, session), _TIMES[node.name], node.position)
        value = _value(node, session)
        if isinstance(value, int):
            return e.CastText(e.NumberText(str(value), node.position), BIGINT, node.position)
        if value is not None:
            return e.CastText(e.StringText(value, node.position), TEXT, node.position)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {
        field.name: after
        for field in fields(node)
        if (after := _walked(before := getattr(node, field.name), session)) is not before
        and after != before
    }
    if isinstance(node, SelectItem) and node.alias is None and "expression" in changed:
        changed["alias"] = _name(node.expression)
    return replace(node, **changed) if changed else node


def _name(expression: e.Expression) -> str | None:
    """Return what an output is called that was a call, and now is a constant."""
    return expression.name if isinstance(expression, e.FunctionText) else None


def constants(expression: e.Expression, session: Speaker | None) -> e.Expression:
    """Return a default with the values of a session's functions, or of no session."""
    made: e.Expression = _walked(expression, session)
    return made


def _catalog(session: Speaker) -> Catalog:
    seen = None if session.transaction is None else session.transaction.catalog
    return session.core.world.catalog if seen is None else seen


def _value(  # noqa: PLR0911 - one per function
    node: e.FunctionText, session: Speaker | None
) -> str | int | None:
    """Return the value of a call; None if it is not one of a function of the session."""
    if node.over is not None or node.distinct or node.star or node.filter is not None:
        return None
    if session is None:
        return "" if node.name in {*SESSION_FUNCTIONS, "current_setting"} else None
    if node.name in SESSION_FUNCTIONS and not node.arguments:
        return SESSION_FUNCTIONS[node.name](session)
    match node.name, node.arguments:
        case "currval", (of,):
            return current(session, sequence_of(of, _catalog(session)))
        case "lastval", ():
            return session.numbers.last()
        case "current_setting", (e.StringText(text=name),):
            return session.settings.get(name.lower())
        case "set_config", (e.StringText(text=name), e.StringText(text=value), e.BooleanText()):
            return _unchanged(session, name.lower(), value)
    return None


def _moment(node: e.FunctionText, session: Speaker | None) -> e.StringText:
    """Return the time that the statement has."""
    if session is None:
        return e.StringText("1970-01-01", node.position)
    transaction = session.transaction
    ms = session.core.clock.now_ms() if transaction is None else transaction.began_ms
    at = datetime.fromtimestamp(ms // 1_000, UTC) + timedelta(milliseconds=ms % 1_000)
    local = at.astimezone(tzinfo_of(session.settings.time_zone)).replace(tzinfo=None)
    if node.name == "current_date":
        return e.StringText(local.date().isoformat(), node.position)
    return e.StringText((at if node.name == "now" else local).isoformat(), node.position)


def _unchanged(session: Speaker, name: str, value: str) -> str:
    """Return the value of a setting that is to have the one it has: queries change nothing."""
    if checked(name, value) != session.settings.get(name):
        message = "set_config of another value is not supported"
        raise NotSupported(message, hint=f"write SET {name} = '…'")
    return value
