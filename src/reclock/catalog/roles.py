"""Roles: who may log in, and who may do what.

A role is a record of the catalog, like objects and settings::

    "role/joe": {"v": 1, "kind": "role", "login": true, "superuser": false, "verifier": "SCRAM-…",
                 "grants": {"u7": ["SELECT"], "database": ["CREATE"]}}

so it changes in one durable append. Privileges on an object are kept by its id, which no other
object ever has: what is dropped and made again has none; a view that is replaced hands its own on.
Grants to ``public`` apply to every role. A user who opens the database in their own process may do
everything: he can read its files.

Tests: tests/catalog/test_roles.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reclock.catalog.verifier import Verifier, make_verifier, read_verifier
from reclock.errors import (
    Corrupt,
    DuplicateName,
    Forbidden,
    NewerFormat,
    StatementError,
    UndefinedName,
)
from reclock.ids import ObjectId
from reclock.sql.names import near_hint
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.catalog.item import Item
    from reclock.durable import catalog_store
    from reclock.durable.keyed import Json
    from reclock.sql.statement.role import RoleOptions

KIND: Final = "role"
VERSION: Final = 1
PUBLIC: Final = "public"
DATABASE: Final = "database"
"""What CREATE is granted on."""


@dataclass(frozen=True, slots=True)
class Role:
    """A role; ``grants`` has its privileges by the id of an object, or ``DATABASE``."""

    name: str
    login: bool = False
    superuser: bool = False
    verifier: Verifier | None = None
    grants: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def altered(self, options: RoleOptions) -> Role:
        """Return the role after what a statement says of it."""
        verifier = None if options.forget else self.verifier
        if options.password is not None:
            verifier = make_verifier(options.password)
        return replace(
            self,
            login=self.login if options.login is None else options.login,
            superuser=self.superuser if options.superuser is None else options.superuser,
            verifier=verifier,
        )

    def granted(self, on: Iterable[str], privileges: Iterable[str], *, revoke: bool) -> Role:
        """Return the role with more privileges, or fewer."""
        grants = dict(self.grants)
        for name in on:
            before = grants.pop(name, frozenset())
            after = before - set(privileges) if revoke else before | set(privileges)
            if after:
                grants[name] = after
        return replace(self, grants=grants)

    def record(self) -> Json:
        """Return what the catalog stores."""
        made: Json = {"v": VERSION, "kind": KIND, "login": self.login, "superuser": self.superuser}
        if self.verifier is not None:
            made["verifier"] = str(self.verifier)
        if self.grants:
            made["grants"] = {on: sorted(given) for on, given in sorted(self.grants.items())}
        return made


@dataclass(frozen=True)
class Roles:
    """All roles, at one moment."""

    given: Mapping[str, Role] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: catalog_store.Catalog) -> Roles:
        """Return the roles that a stored catalog has."""
        found = {
            key.removeprefix(f"{KIND}/"): record
            for key, record in stored.items().items()
            if is_role(record)
        }
        return cls({name: _stored(name, record) for name, record in found.items()})

    def find(self, name: str) -> Role | None:
        """Return the role of that name, or None."""
        return self.given.get(name)

    def get(self, name: str, position: int | None = None) -> Role:
        """Return the role of that name, or say that there is none; ``public`` is always there."""
        found = self.given.get(name)
        if found is None and name == PUBLIC:
            return Role(PUBLIC)
        if found is None:
            message = f'role "{name}" does not exist'
            hint = near_hint(Name((name,)), [n for n in self.given if n != PUBLIC])
            raise UndefinedName(message, code="42704", hint=hint, position=position)
        return found

    def added(self, role: Role, position: int | None) -> Roles:
        """Return the roles with a new one."""
        if role.name == PUBLIC or role.name.startswith("pg_"):
            message = f'role name "{role.name}" is reserved'
            hint = "choose another name"
            raise StatementError(message, code="42939", hint=hint, position=position)
        if role.name in self.given:
            message = f'role "{role.name}" already exists'
            hint = "choose another name, or ALTER it"
            raise DuplicateName(message, code="42710", hint=hint, position=position)
        return self.changed([role])

    def changed(self, roles: Iterable[Role] = (), removed: Iterable[str] = ()) -> Roles:
        """Return the roles with some changed and some removed."""
        kept = {name: role for name, role in self.given.items() if name not in set(removed)}
        return Roles({**kept, **{role.name: role for role in roles}})

    def inherited(self, old: str, new: str) -> Roles:
        """Return the roles with the privileges on an object on the one that takes its place."""
        changed = [
            replace(role, grants={new if on == old else on: p for on, p in role.grants.items()})
            for role in self.given.values()
            if old in role.grants
        ]
        return self.changed(changed)

    def may(self, name: str, privilege: str, on: str) -> bool:
        """Return whether a role, or everybody, has a privilege."""
        roles = (self.given.get(name), self.given.get(PUBLIC))
        return any(role is not None and privilege in role.grants.get(on, ()) for role in roles)

    def has(self, name: str, privilege: str, item: Item) -> bool:
        """Return whether a role has a privilege on an object: its own, granted, or as superuser."""
        known = self.find(name)
        superuser = known is not None and known.superuser
        return item.owner == name or superuser or self.may(name, privilege, item.id)

    def records(self, before: Roles) -> dict[ObjectId, Json | None]:
        """Return the records to change for these roles to follow ``before``."""
        return {
            ObjectId(f"{KIND}/{name}"): None if role is None else role.record()
            for name in sorted(self.given.keys() | before.given.keys())
            if (role := self.given.get(name)) != before.given.get(name)
        }


def gone(name: str) -> Forbidden:
    """Return the error of a session whose role was dropped."""
    message = f'role "{name}" does not exist any more'
    return Forbidden(message, hint="log in as another role")


def is_role(record: Json) -> bool:
    """Return whether a record of the catalog is that of a role."""
    return record.get("kind") == KIND


def _stored(name: str, record: Json) -> Role:
    if record.get("v", 0) > VERSION:
        message = f'role "{name}" is stored in a way that this version does not know'
        raise NewerFormat(message, hint="open the state with a later reclock")
    try:
        text = record.get("verifier")
        verifier = None if text is None else read_verifier(text)
        if text is not None and verifier is None:
            raise ValueError(name)
        grants = {on: frozenset(given) for on, given in record.get("grants", {}).items()}
        return Role(name, bool(record["login"]), bool(record["superuser"]), verifier, grants)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f'role "{name}" cannot be read'
        raise Corrupt(message) from error
