"""DROP, ALTER, SHOW, SET, RESET, BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported
from reclock.sql.parse.options import DURATION, parse_options
from reclock.sql.parse.role import parse_alter_role, parse_drop_role
from reclock.sql.statement.objects import KINDS, AlterOwner, AlterRetainHistory, Drop, Show
from reclock.sql.statement.settings import AlterSystem, SetVariable
from reclock.sql.statement.sink import AlterSink
from reclock.sql.statement.transaction import Begin
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.statement.role import AlterRole, DropRole

_LISTS = ("TABLES", "VIEWS", "INDEXES", "SOURCES", "SINKS", "OBJECTS", "COLUMNS", "ALL")
_LEVELS = ("strict serializable", "serializable")


def parse_drop(cursor: Cursor) -> Drop | DropRole:
    """Read what follows DROP."""
    if cursor.accept("ROLE") or cursor.accept("USER"):
        return parse_drop_role(cursor)
    kind = _kind(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    cursor.end()
    return Drop(kind, tuple(names), if_exists, cascade)


def _kind(cursor: Cursor) -> str:
    for kind in KINDS:
        if cursor.accept(*kind.upper().split()):
            return kind
    msg = "TABLE, VIEW, MATERIALIZED VIEW, INDEX, SOURCE or SINK"
    raise cursor.error(msg)


def parse_alter(
    cursor: Cursor,
) -> AlterSystem | AlterRetainHistory | AlterOwner | AlterSink | AlterRole:
    """Read what follows ALTER."""
    if cursor.accept("ROLE") or cursor.accept("USER"):
        return parse_alter_role(cursor)
    if cursor.accept("SYSTEM"):
        if cursor.accept("RESET"):
            name = None if cursor.accept("ALL") else cursor.identifier()
            cursor.end()
            return AlterSystem(name, None)
        cursor.expect("SET")
        set_name, value = _assignment(cursor)
        return AlterSystem(set_name, value)
    return _alter_object(cursor)


def _alter_object(cursor: Cursor) -> AlterRetainHistory | AlterOwner | AlterSink:
    kind = _kind(cursor)
    object_name = cursor.name()
    if kind == "sink" and cursor.accept("SET", "FROM"):
        relation = cursor.name()
        cursor.end()
        return AlterSink(object_name, relation)
    if cursor.accept("OWNER", "TO"):
        position = cursor.position
        role = cursor.identifier()
        cursor.end()
        return AlterOwner(kind, object_name, role, position)
    if cursor.accept("RESET"):
        cursor.expect("(", "RETAIN", "HISTORY", ")")
        cursor.end()
        return AlterRetainHistory(kind, object_name, None)
    if not cursor.sees("SET"):
        message = "this form of ALTER is not supported"
        hint = (
            "supported: SET (RETAIN HISTORY FOR '…'), RESET (RETAIN HISTORY), OWNER TO; "
            "of sinks SET FROM"
        )
        raise NotSupported(message, hint=hint, position=cursor.position)
    cursor.expect("SET")
    options = parse_options(cursor, {"retain_history": DURATION}, keyword=False)
    cursor.end()
    return AlterRetainHistory(kind, object_name, options.duration("retain_history"))


def _assignment(cursor: Cursor) -> tuple[str, str | None]:
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


def parse_set(cursor: Cursor) -> SetVariable:
    """Read what follows SET."""
    local = cursor.accept("LOCAL")
    if not local:
        cursor.accept("SESSION")
    if cursor.accept("CHARACTERISTICS", "AS", "TRANSACTION") or cursor.accept("TRANSACTION"):
        cursor.expect("ISOLATION", "LEVEL")
        level = _level(cursor)
        cursor.end()
        return SetVariable("transaction_isolation", level, local)
    if cursor.accept("TIME", "ZONE"):
        value = cursor.word_value()
        cursor.end()
        return SetVariable("timezone", value, local)
    name, value_or_default = _assignment(cursor)
    return SetVariable(name, value_or_default, local)


def _level(cursor: Cursor) -> str:
    for level in _LEVELS:
        if cursor.accept(*level.upper().split()):
            return level
    position = cursor.position
    words = [cursor.word_value() for _ in range(2) if not cursor.at_end]
    message = f"isolation level {' '.join(words)} is not supported"
    hint = "supported: STRICT SERIALIZABLE, SERIALIZABLE"
    raise NotSupported(message, hint=hint, position=position)


def parse_reset(cursor: Cursor) -> SetVariable:
    """Read what follows RESET."""
    name = cursor.identifier()
    cursor.end()
    return SetVariable(name, None)


def parse_show(cursor: Cursor) -> Show:
    """Read what follows SHOW."""
    if cursor.accept("CREATE"):
        kind = _kind(cursor)
        name = cursor.name()
        cursor.end()
        return Show("create", name, kind)
    if cursor.accept("MATERIALIZED", "VIEWS"):
        cursor.end()
        return Show("materialized views")
    if cursor.accept("TRANSACTION", "ISOLATION", "LEVEL"):
        cursor.end()
        return Show("setting", Name(("transaction_isolation",)))
    for word in _LISTS:
        if not cursor.accept(word):
            continue
        of = None
        if word == "COLUMNS":
            cursor.expect("FROM")
            of = cursor.name()
        elif word == "INDEXES" and (cursor.accept("ON") or cursor.accept("FROM")):
            of = cursor.name()
        cursor.end()
        return Show(word.lower(), of)
    setting = cursor.name()
    cursor.end()
    return Show("setting", setting)


def parse_begin(cursor: Cursor) -> Begin:
    """Read what follows BEGIN or START."""
    if not cursor.accept("TRANSACTION"):
        cursor.accept("WORK")
    isolation, read_only = None, False
    while not cursor.at_end:
        if cursor.accept("ISOLATION", "LEVEL"):
            isolation = _level(cursor)
        elif cursor.accept("READ", "ONLY"):
            read_only = True
        elif not cursor.accept("READ", "WRITE"):
            msg = "ISOLATION LEVEL …, READ ONLY or READ WRITE"
            raise cursor.error(msg)
        cursor.accept(",")
    return Begin(isolation, read_only)
