"""The plan of a pipeline file: create what is missing, leave what exists.

Definition. Each statement is one step::

    CREATE of a name that is free            create it
    CREATE of a name that has the same text  leave it; secrets are not compared
    CREATE of a name that has another text   a conflict: nothing of the file is applied
    INSERT, UPDATE, DELETE                   run it if its table is created by this file now
    CREATE ROLE, USER of a name that is free make it
    CREATE ROLE, USER of one that is there   leave it, and its password
    ALTER SYSTEM SET, GRANT                  run it: it says the same each time
    anything else                            refused

So a file can be run again and again: after a stop, a crash, or after more was written at its end.

All conflicts are in one error, with what differs. Tests: tests/session/pipeline/test_plan.py.
"""

from __future__ import annotations

import difflib
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from reclock.catalog.connections import connection_text, secret_text
from reclock.errors import DuplicateName, NotSupported
from reclock.sql.parse import parse_statements
from reclock.sql.statement import (
    AlterSystem,
    CreateConnection,
    CreateIndex,
    CreateMaterializedView,
    CreateRole,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateView,
    Delete,
    Grant,
    Insert,
    Merge,
    Update,
)

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.catalog.roles import Roles
    from reclock.sql.statement import Parsed


class Action(Enum):
    """What becomes of a statement."""

    CREATE = "create"
    KEEP = "unchanged"
    RUN = "run"
    SKIP = "skipped: its table was there before"


class Step(NamedTuple):
    """A statement, and what becomes of it."""

    action: Action
    parsed: Parsed

    @property
    def title(self) -> str:
        """The first line of the statement, or its beginning; of a role nothing but its name."""
        statement = self.parsed.statement
        if isinstance(statement, CreateRole):
            return f"CREATE ROLE {statement.name}"
        if isinstance(statement, CreateSecret | CreateConnection):
            return _shown(self.parsed)
        line = self.parsed.text.strip().splitlines()[0]
        return line if len(line) <= 70 else f"{line[:69]}…"


def plan_pipeline(text: str, catalog: Catalog, roles: Roles) -> list[Step]:
    """Return the steps of a file, or all that is in their way."""
    steps: list[Step] = []
    made: set[str] = set()
    conflicts: list[str] = []
    for parsed in parse_statements(text):
        action = _action(parsed, catalog, roles, made)
        if isinstance(action, Action):
            steps.append(Step(action, parsed))
        else:
            conflicts.append(_difference(action, parsed))
    if conflicts:
        count = f"{len(conflicts)} object{'' if len(conflicts) == 1 else 's'}"
        message = f"{count} of the file {'is' if len(conflicts) == 1 else 'are'} there otherwise"
        hint = "DROP what is to be made again, or give it another name; nothing was applied"
        raise DuplicateName(message, detail="\n".join(conflicts), hint=hint)
    return steps


def _action(parsed: Parsed, catalog: Catalog, roles: Roles, made: set[str]) -> Action | Item:
    """Return what becomes of a statement, or the object that it is in conflict with."""
    match parsed.statement:
        case CreateIndex(name=None):
            message = "an index of a pipeline needs a name"
            hint = "write CREATE INDEX name ON …: a file may be run again"
            raise NotSupported(message, hint=hint)
        case (
            CreateIndex(name=name)
            | CreateConnection(name=name)
            | CreateMaterializedView(name=name)
            | CreateSecret(name=name)
            | CreateSink(name=name)
            | CreateSource(name=name)
            | CreateTable(name=name)
            | CreateView(name=name)
        ):
            assert name is not None
            found = catalog.find(name.parts)
            if found is not None:
                return Action.KEEP if same(found.sql, _shown(parsed)) else found
            if name.parts[-1] in made:
                message = f'the file creates "{name.parts[-1]}" twice'
                raise DuplicateName(message, hint="leave one of them out")
            made.add(name.parts[-1])
            return Action.CREATE
        case Insert(name=name) | Update(name=name) | Delete(name=name) | Merge(name=name):
            return Action.RUN if name.parts[-1] in made else Action.SKIP
        case CreateRole(name=role):
            return Action.CREATE if roles.find(role) is None else Action.KEEP
        case AlterSystem() | Grant(revoke=False):
            return Action.RUN
        case CreateTableAs():
            message = "a pipeline cannot CREATE TABLE … AS"
            hint = "make a materialized view of the query, or CREATE TABLE and INSERT its rows"
            raise NotSupported(message, hint=hint)
    message = f"a pipeline cannot {parsed.text.split()[0].upper()}"
    hint = (
        "it says what there shall be: CREATE …, GRANT …, ALTER SYSTEM SET …; "
        "reclock sql -f runs the rest"
    )
    raise NotSupported(message, hint=hint)


def _difference(found: Item, parsed: Parsed) -> str:
    lines = difflib.unified_diff(
        found.sql.splitlines(), _shown(parsed).splitlines(),
        f"{found.name} (there)", f"{found.name} (file)", lineterm="",
    )  # fmt: skip
    return "\n".join(lines)


def _shown(parsed: Parsed) -> str:
    """Return the text of a statement, of a connection and a secret as they are kept."""
    match parsed.statement:
        case CreateSecret(name=name):
            return secret_text(name.parts[-1])
        case CreateConnection():
            return connection_text(parsed.statement)
    return parsed.text


def same(stored: str, given: str) -> bool:
    """Return whether an object was made by a text, whose secrets are not shown.

    >>> same("CREATE … (p = '***')", "CREATE … (p = 'secret')"), same("a", "b")
    (True, False)
    """
    first, *rest = stored.split("'***'")
    if not given.startswith(first):
        return False
    place = len(first)
    for part in rest:
        found = given.find(part, place) if part else len(given)
        if found < 0:
            return False
        place = found + len(part)
    return place == len(given)
