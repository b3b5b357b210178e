"""DROP, ALTER and SHOW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidSyntax, NotSupported
from reclock.sql.parse.alter_table import is_action, parse_alter_table, parse_rename
from reclock.sql.parse.connection import parse_alter_secret
from reclock.sql.parse.options import DURATION, STRING, parse_options
from reclock.sql.parse.role import parse_alter_role, parse_drop_role
from reclock.sql.parse.sequence import parse_alter_sequence
from reclock.sql.parse.session import parse_assignment
from reclock.sql.statement.objects import KINDS, AlterOwner, AlterRetainHistory, Drop, Show
from reclock.sql.statement.settings import AlterSystem
from reclock.sql.statement.sink import AlterSink
from reclock.sql.statement.source import AlterSource, RefreshSource
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.statement.alter_table import AlterTable, Rename
    from reclock.sql.statement.connection import AlterSecret
    from reclock.sql.statement.role import AlterRole, DropRole
    from reclock.sql.statement.sequence import AlterSequence

_LISTS = (
    "TABLES",
    "VIEWS",
    "INDEXES",
    "SOURCES",
    "SINKS",
    "CONNECTIONS",
    "SECRETS",
    "OBJECTS",
    "COLUMNS",
    "ALL",
)


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
    msg = "TABLE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE, SOURCE, SINK, CONNECTION or SECRET"
    raise cursor.error(msg)


def parse_alter(
    cursor: Cursor,
) -> (
    AlterSystem
    | AlterRetainHistory
    | AlterOwner
    | AlterSecret
    | AlterSink
    | AlterSource
    | RefreshSource
    | AlterRole
    | AlterSequence
    | AlterTable
    | Rename
):
    """Read what follows ALTER."""
    if cursor.accept("ROLE") or cursor.accept("USER"):
        return parse_alter_role(cursor)
    if cursor.accept("SYSTEM"):
        if cursor.accept("RESET"):
            name = None if cursor.accept("ALL") else cursor.identifier()
            cursor.end()
            return AlterSystem(name, None)
        cursor.expect("SET")
        set_name, value = parse_assignment(cursor)
        return AlterSystem(set_name, value)
    return _alter_object(cursor)


def _alter_object(  # noqa: PLR0911, PLR0912 - one per form
    cursor: Cursor,
) -> (
    AlterRetainHistory
    | AlterOwner
    | AlterSecret
    | AlterSink
    | AlterSource
    | RefreshSource
    | AlterSequence
    | AlterTable
    | Rename
):
    kind = _kind(cursor)
    position = cursor.position
    if_exists = cursor.accept("IF", "EXISTS")
    if kind == "table":
        cursor.accept("ONLY")
    object_name = cursor.name()
    if kind == "table" and is_action(cursor):
        return parse_alter_table(cursor, object_name, if_exists=if_exists)
    if kind == "secret" and cursor.sees("AS"):
        return parse_alter_secret(cursor, object_name)
    if cursor.accept("RENAME"):
        return parse_rename(cursor, kind, object_name, if_exists=if_exists)
    if if_exists and kind != "sequence":
        message = "IF EXISTS in this form of ALTER is not supported"
        raise NotSupported(message, hint="leave it out", position=position)
    if kind == "sequence" and not cursor.sees("OWNER"):
        return parse_alter_sequence(cursor, object_name, if_exists=if_exists)
    if kind == "sink" and cursor.accept("SET", "FROM"):
        relation = cursor.name()
        cursor.end()
        return AlterSink(object_name, relation)
    if kind == "source" and cursor.accept("REFRESH"):
        cursor.end()
        return RefreshSource(object_name)
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
            "of sinks SET FROM; of sources SET (on_error = '…'), REFRESH"
        )
        raise NotSupported(message, hint=hint, position=cursor.position)
    cursor.expect("SET")
    position = cursor.position
    known = {"retain_history": DURATION} | ({"on_error": STRING} if kind == "source" else {})
    options = parse_options(cursor, known, keyword=False)
    cursor.end()
    if (on_error := options.text("on_error")) is not None:
        if options.text("retain_history") is not None:
            message = "on_error and RETAIN HISTORY are set one at a time"
            raise InvalidSyntax(message, hint="write two statements", position=position)
        return AlterSource(object_name, on_error)
    return AlterRetainHistory(kind, object_name, options.duration("retain_history"))


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
        return Show("isolation level")
    if cursor.accept("TIME", "ZONE"):
        cursor.end()
        return Show("setting", Name(("timezone",)))
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
