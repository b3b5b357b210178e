"""CREATE, ALTER and DROP of roles; GRANT and REVOKE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.errors import NotSupported
from reclock.secret import Secret
from reclock.sql.statement.role import (
    PRIVILEGES,
    AlterRole,
    CreateRole,
    DropRole,
    Grant,
    RoleOptions,
)

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor

_LOGIN = {"LOGIN": True, "NOLOGIN": False}
_SUPERUSER = {"SUPERUSER": True, "NOSUPERUSER": False}


def parse_create_role(cursor: Cursor, *, login: bool) -> CreateRole:
    """Read what follows CREATE ROLE, or CREATE USER, who may log in."""
    position = cursor.position
    name = cursor.identifier()
    return CreateRole(name, _options(cursor, RoleOptions(login, superuser=False)), position)


def parse_alter_role(cursor: Cursor) -> AlterRole:
    """Read what follows ALTER ROLE."""
    position = cursor.position
    name = cursor.identifier()
    return AlterRole(name, _options(cursor, RoleOptions()), position)


def parse_drop_role(cursor: Cursor) -> DropRole:
    """Read what follows DROP ROLE."""
    if_exists = cursor.accept("IF", "EXISTS")
    position = cursor.position
    names = [cursor.identifier()]
    while cursor.accept(","):
        names.append(cursor.identifier())
    cursor.end()
    return DropRole(tuple(names), if_exists, position)


def _options(cursor: Cursor, given: RoleOptions) -> RoleOptions:
    cursor.accept("WITH")
    while not cursor.at_end:
        login = next((v for word, v in _LOGIN.items() if cursor.accept(word)), None)
        superuser = next((v for word, v in _SUPERUSER.items() if cursor.accept(word)), None)
        if login is not None or superuser is not None:
            given = replace(
                given,
                login=given.login if login is None else login,
                superuser=given.superuser if superuser is None else superuser,
            )
            continue
        cursor.accept("ENCRYPTED")
        if not cursor.accept("PASSWORD"):
            msg = "LOGIN, NOLOGIN, SUPERUSER, NOSUPERUSER or PASSWORD '…'"
            raise cursor.error(msg)
        if cursor.accept("NULL"):
            given = replace(given, password=None, forget=True)
        else:
            given = replace(given, password=Secret(cursor.string()), forget=False)
    return given


def parse_grant(cursor: Cursor, *, revoke: bool) -> Grant:
    """Read what follows GRANT or REVOKE."""
    position = cursor.position
    privileges = _privileges(cursor)
    if cursor.sees("TO") or cursor.sees("FROM"):
        message = "membership in roles is not supported"
        raise NotSupported(message, hint="grant privileges to each role", position=position)
    cursor.expect("ON")
    on = None
    if cursor.accept("DATABASE") or cursor.accept("SCHEMA"):
        cursor.name()
        privileges = privileges or ("CREATE",)
        if privileges != ("CREATE",):
            message = "the only privilege on the database is CREATE"
            raise NotSupported(message, hint="grant others on objects", position=position)
    else:
        if cursor.accept("ALL", "TABLES"):
            message = "GRANT ON ALL TABLES is not supported"
            raise NotSupported(message, hint="name the objects", position=position)
        for words in (("TABLE",), ("MATERIALIZED", "VIEW"), ("VIEW",), ("SOURCE",)):
            if cursor.accept(*words):
                break
        names = [cursor.name()]
        while cursor.accept(","):
            names.append(cursor.name())
        privileges = privileges or PRIVILEGES
        if "CREATE" in privileges:
            message = "CREATE is a privilege on the database"
            hint = "write GRANT CREATE ON DATABASE reclock TO …"
            raise NotSupported(message, hint=hint, position=position)
        on = tuple(names)
    cursor.expect("FROM" if revoke else "TO")
    roles = [cursor.identifier()]
    while cursor.accept(","):
        roles.append(cursor.identifier())
    cursor.end()
    return Grant(privileges, on, tuple(roles), position, revoke)


def _privileges(cursor: Cursor) -> tuple[str, ...]:
    """Read a list of privileges; none stands for ALL."""
    if cursor.accept("ALL"):
        cursor.accept("PRIVILEGES")
        return ()
    found = [_privilege(cursor)]
    while cursor.accept(","):
        found.append(_privilege(cursor))
    return tuple(dict.fromkeys(found))


def _privilege(cursor: Cursor) -> str:
    for word in (*PRIVILEGES, "CREATE"):
        if cursor.accept(word):
            return word
    msg = "SELECT, INSERT, UPDATE, DELETE, CREATE or ALL"
    raise cursor.error(msg, hint="a role cannot be granted to another: grant privileges")
