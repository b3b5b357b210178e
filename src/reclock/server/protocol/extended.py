"""Prepared statements and portals: the extended protocol.

A statement is parsed and described once, and run with values as often as one likes. Values come
as text or binary, of the type that the client declared or that ``Session.describe`` found out.
The unnamed statement and portal are replaced by the next; a named one must be closed first.

Tests: tests/server/protocol/test_extended.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidSyntax, InvalidValue, ProtocolViolation, StatementError
from reclock.rows.copy_text import utf8
from reclock.server.codec import binary, text
from reclock.server.codec.oid import JSONB, oid_of, type_of
from reclock.server.protocol.portal import Portal, formats_of
from reclock.session.described import PreparedStatement
from reclock.session.prepared import check_free, unknown_statement
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.zone import in_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.server.codec.frontend import Bind, Parse
    from reclock.session.session import Session
    from reclock.sql.types import Type


_UNKNOWN: Final = 705


def oids_of(prepared: PreparedStatement) -> tuple[int, ...]:
    """Return the types of the parameters, as the client is told."""
    found = () if prepared.description is None else prepared.description.parameters
    given = (oid if oid not in {0, _UNKNOWN} else None for oid in prepared.declared)
    return tuple(oid or oid_of(kind) for oid, kind in zip_longest(given, found))


@dataclass(slots=True)
class Bound:
    """A portal; ``formats`` are those of the rows. None is that of an empty statement."""

    prepared: PreparedStatement
    portal: Portal | None
    formats: tuple[int, ...]


@dataclass(slots=True)
class Extended:
    """What one connection has prepared and bound."""

    session: Session
    portals: dict[str, Bound] = field(default_factory=dict)

    @property
    def statements(self) -> dict[str, PreparedStatement]:
        """What is prepared, by name; the session has it, so that DEALLOCATE can forget it."""
        return self.session.prepared

    def prepare_known(self, message: Parse) -> bool:
        """Prepare a query that is known, without parsing anything; say whether it was one."""
        if message.name and message.name in self.statements:
            return False
        found = self.session.known(message.sql)
        if found is None or len(found) != 1:
            return False
        declared = tuple(map(type_of, message.types))
        description = self.session.known_description(found[0], declared)
        if description is None:
            return False
        self.statements.pop("", None)
        self.statements[message.name] = PreparedStatement(found[0], description, message.types)
        return True

    def prepare(self, message: Parse) -> None:
        """Parse and describe a statement."""
        if message.name:
            check_free(message.name, self.statements)
        self.statements.pop("", None)
        found = self.session.parsed(message.sql)
        if len(found) > 1:
            text_ = "cannot insert multiple commands into a prepared statement"
            raise InvalidSyntax(text_, position=found[1].position, hint="prepare them one by one")
        if not found:
            self.statements[message.name] = PreparedStatement(None, None)
            return
        declared = [type_of(oid) for oid in message.types]
        description = self.session.describe(found[0], declared)
        self.statements[message.name] = PreparedStatement(found[0], description, message.types)

    def bind(self, message: Bind) -> None:
        """Give a statement its values."""
        prepared = self.statement(message.statement)
        if message.portal and message.portal in self.portals:
            text_ = f'cursor "{message.portal}" already exists'
            raise StatementError(text_, code="42P03", hint="close it first")
        self.close_portal("")
        if prepared.parsed is None or prepared.description is None:
            self.portals[message.portal] = Bound(prepared, None, ())
            return
        kinds, schema = prepared.description.parameters, prepared.description.schema
        with in_zone(self.session.settings.time_zone):
            values = _values(message, kinds, prepared.declared)
        columns = 0 if schema is None else len(schema)
        formats = formats_of(message.result_formats, columns) if schema is not None else ()
        portal = Portal(self.session, prepared.parsed, values, formats, schema)
        self.portals[message.portal] = Bound(prepared, portal, formats)

    def statement(self, name: str) -> PreparedStatement:
        """Return a prepared statement."""
        found = self.statements.get(name)
        if found is None:
            raise unknown_statement(name)
        return found

    def portal(self, name: str) -> Bound:
        """Return a portal."""
        found = self.portals.get(name)
        if found is None:
            text_ = f'portal "{name}" does not exist'
            hint = "portals end with their transaction: BEGIN one to go on with a portal"
            raise StatementError(text_, code="34000", hint=hint)
        return found

    def close_portal(self, name: str) -> None:
        """Forget a portal; one that does not exist is forgotten already."""
        found = self.portals.pop(name, None)
        if found is not None and found.portal is not None:
            found.portal.close()

    def close_portals(self) -> None:
        """Forget all portals: their transaction is over."""
        for name in tuple(self.portals):
            self.close_portal(name)


def _values(message: Bind, kinds: Sequence[Type], declared: Sequence[int]) -> list[Typed]:
    if len(message.parameters) != len(kinds):
        text_ = (
            f"bind message supplies {len(message.parameters)} parameters, but prepared statement "
            f'"{message.statement}" requires {len(kinds)}'
        )
        raise ProtocolViolation(text_)
    formats = _formats(message.parameter_formats, len(kinds))
    oids = [*declared, *[0] * len(kinds)]
    given = zip(message.parameters, kinds, formats, oids, strict=False)
    return [
        _value(at, _unversioned(value) if form and oid == JSONB else value, kind, form)
        for at, (value, kind, form, oid) in enumerate(given, 1)
    ]


def _unversioned(value: bytes | None) -> bytes | None:
    """Return a jsonb without the version of its format, which is 1: what follows is text."""
    return None if value is None else value.removeprefix(b"\x01")


def _formats(given: tuple[int, ...], count: int) -> tuple[int, ...]:
    if len(given) > 1 and len(given) != count:
        text_ = f"bind message has {len(given)} parameter formats but {count} parameters"
        raise ProtocolViolation(text_)
    return formats_of(given, count)


def _value(at: int, value: bytes | None, kind: Type, form: int) -> Typed:
    if value is None:
        return Typed(None, kind)
    try:
        if form:
            return Typed(binary.read(value, kind), kind)
        return Typed(text.read(utf8(value), kind), kind)
    except (InvalidValue, StatementError) as error:
        error.detail = "; ".join(filter(None, [f"parameter ${at}", error.detail]))
        raise
