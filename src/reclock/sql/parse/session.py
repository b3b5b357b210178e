"""SET, RESET, BEGIN; DEALLOCATE, DISCARD and UNLISTEN.

An isolation level that is weaker than those there are is given as the strongest one: it is what was
asked for, and more, as the standard of SQL allows. Every session of PostgreSQL that asks for READ
UNCOMMITTED gets more too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.errors import NotSupported
from reclock.sql.statement.session import Deallocate, Discard, Unlisten
from reclock.sql.statement.settings import SetTransaction, SetVariable
from reclock.sql.statement.transaction import Begin

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor

_STRONGEST: Final = "strict serializable"
_LEVELS: Final = {
    "strict serializable": _STRONGEST,
    "serializable": "serializable",
    "repeatable read": _STRONGEST,
    "read committed": _STRONGEST,
    "read uncommitted": _STRONGEST,
}
_DISCARDED: Final = {
    "ALL": "all", "PLANS": "plans", "SEQUENCES": "sequences", "TEMP": "temp", "TEMPORARY": "temp",
}  # fmt: skip


def parse_assignment(cursor: Cursor) -> tuple[str, str | None]:
    """Read ``name = value``; a value of None is the default."""
    name = cursor.identifier()
    while cursor.accept("."):
        name += "." + cursor.identifier()
    if not cursor.accept("="):
        cursor.expect("TO")
    if cursor.accept("DEFAULT"):
        cursor.end()
        return name, None
    words = [cursor.word_value()]
    while not cursor.at_end:
        cursor.accept(",")
        words.append(cursor.word_value())
    return name, " ".join(words)


def parse_set(cursor: Cursor) -> SetVariable | SetTransaction:
    """Read what follows SET."""
    if cursor.accept("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"):
        return _set_transaction(cursor, session=True)
    if cursor.accept("TRANSACTION"):
        return _set_transaction(cursor, session=False)
    local = cursor.accept("LOCAL")
    if not local:
        cursor.accept("SESSION")
    if cursor.accept("TIME", "ZONE"):
        return SetVariable("timezone", _zone(cursor), local)
    if cursor.accept("NAMES"):
        return SetVariable("client_encoding", _one_value(cursor), local)
    name, value = parse_assignment(cursor)
    return SetVariable(name, value, local)


def _one_value(cursor: Cursor) -> str | None:
    value = None if cursor.accept("DEFAULT") else cursor.word_value()
    cursor.end()
    return value


def _zone(cursor: Cursor) -> str | None:
    """Read the zone of SET TIME ZONE: a name, hours, an interval, LOCAL or DEFAULT."""
    if cursor.accept("LOCAL"):
        cursor.end()
        return None
    if not cursor.accept("INTERVAL"):
        return _one_value(cursor)
    value = cursor.string()
    if cursor.accept("HOUR", "TO"):
        cursor.expect("MINUTE")
    cursor.end()
    return value


def parse_reset(cursor: Cursor) -> SetVariable:
    """Read what follows RESET."""
    if cursor.accept("TIME", "ZONE"):
        cursor.end()
        return SetVariable("timezone", None)
    name = None if cursor.accept("ALL") else cursor.identifier()
    cursor.end()
    return SetVariable(name, None)


def parse_begin(cursor: Cursor) -> Begin:
    """Read what follows BEGIN or START."""
    if not cursor.accept("TRANSACTION"):
        cursor.accept("WORK")
    isolation, read_only = _modes(cursor)
    return Begin(isolation, read_only)


def _set_transaction(cursor: Cursor, *, session: bool) -> SetTransaction:
    if cursor.at_end:
        msg = "ISOLATION LEVEL …, READ ONLY or READ WRITE"
        raise cursor.error(msg)
    isolation, read_only = _modes(cursor)
    return SetTransaction(isolation, read_only, session)


class _Modes(NamedTuple):
    isolation: str | None = None
    read_only: bool | None = None


def _modes(cursor: Cursor) -> _Modes:
    """Read the modes of a transaction; DEFERRABLE ones wait for nothing here."""
    found = _Modes()
    while not cursor.at_end:
        if cursor.accept("ISOLATION", "LEVEL"):
            found = found._replace(isolation=_level(cursor))
        elif cursor.accept("READ", "ONLY"):
            found = found._replace(read_only=True)
        elif cursor.accept("READ", "WRITE"):
            found = found._replace(read_only=False)
        elif not (cursor.accept("NOT", "DEFERRABLE") or cursor.accept("DEFERRABLE")):
            msg = "ISOLATION LEVEL …, READ ONLY or READ WRITE"
            raise cursor.error(msg)
        cursor.accept(",")
    return found


def _level(cursor: Cursor) -> str:
    for level, given in _LEVELS.items():
        if cursor.accept(*level.upper().split()):
            return given
    position = cursor.position
    words = [cursor.word_value() for _ in range(2) if not cursor.at_end]
    message = f"isolation level {' '.join(words)} is not supported"
    hint = "supported: STRICT SERIALIZABLE, SERIALIZABLE"
    raise NotSupported(message, hint=hint, position=position)


def parse_deallocate(cursor: Cursor) -> Deallocate:
    """Read what follows DEALLOCATE."""
    cursor.accept("PREPARE")
    name = None if cursor.accept("ALL") else cursor.identifier()
    cursor.end()
    return Deallocate(name)


def parse_discard(cursor: Cursor) -> Discard:
    """Read what follows DISCARD."""
    for word, what in _DISCARDED.items():
        if cursor.accept(word):
            cursor.end()
            return Discard(what)
    msg = "ALL, PLANS, SEQUENCES or TEMP"
    raise cursor.error(msg)


def parse_unlisten(cursor: Cursor) -> Unlisten:
    """Read what follows UNLISTEN."""
    if not cursor.accept("*"):
        cursor.identifier()
    cursor.end()
    return Unlisten()
