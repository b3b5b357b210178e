"""``nextval``, ``setval``, ``currval`` and ``lastval``, for a session.

Numbers are given to sessions whatever becomes of their transactions, but those of a sequence that a
transaction has made, which has them to itself (``drawn_numbers``) until it commits.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reclock.catalog.item import Table
from reclock.catalog.serial.item import Position, Sequence
from reclock.errors import Forbidden, InvalidTransactionState, StatementError, UndefinedName
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize
from reclock.sql.syntax import expression as e

if TYPE_CHECKING:
    from collections.abc import Sequence as Values

    from reclock.catalog.catalog import Catalog
    from reclock.session.speaker import Speaker


def drawn_from(expression: e.Expression | None) -> e.Name | None:
    """Return the sequence that ``nextval('…')`` names; None if it is something else."""
    match expression:
        case e.FunctionText(name="nextval", arguments=(e.StringText(text, position),)):
            return _name(text, position)
    return None


def _name(text: str, position: int | None) -> e.Name:
    """Return a name that is written in a string."""
    cursor = Cursor(tokenize(text), text)
    name = cursor.name()
    cursor.end()
    return e.Name(name.parts, position)


def sequence_of(
    expression: e.Expression, catalog: Catalog, parameters: tuple[object, ...] = ()
) -> Sequence:
    """Return the sequence that the argument of a call names."""
    match expression:
        case e.StringText(text, position):
            return named(_name(text, position), catalog)
        case e.CastText(operand):
            return sequence_of(operand, catalog, parameters)
        case e.Parameter(index, position) if index <= len(parameters):
            given: Any = parameters[index - 1]
            return named(_name(str(getattr(given, "value", given)), position), catalog)
        case e.FunctionText(name="pg_get_serial_sequence", arguments=(of, column)):
            return _serial(of, column, catalog)
    message = "the sequence must be named by a literal"
    hint = "write nextval('name')"
    raise StatementError(message, code="0A000", hint=hint)


def named(name: e.Name, catalog: Catalog) -> Sequence:
    """Return the sequence of a name."""
    if catalog.find(name.parts) is None:
        message = f'relation "{name}" does not exist'
        hint = "CREATE SEQUENCE makes one"
        raise UndefinedName(message, code="42P01", hint=hint, position=name.position)
    return catalog.get(name, Sequence)


def _serial(of: e.Expression, column: e.Expression, catalog: Catalog) -> Sequence:
    if not (isinstance(of, e.StringText) and isinstance(column, e.StringText)):
        message = "pg_get_serial_sequence takes literals here"
        raise StatementError(message, code="0A000", hint="name the sequence itself")
    table = catalog.get(_name(of.text, of.position), Table)
    found = serial_sequence(table, column.text, catalog)
    if found is None:
        message = f'column "{column.text}" of relation "{table.name}" has no sequence'
        hint = "name the sequence itself"
        raise UndefinedName(message, code="42704", hint=hint, position=column.position)
    return found


def serial_sequence(table: Table, column: str, catalog: Catalog) -> Sequence | None:
    """Return the sequence that belongs to a column."""
    numbers = {c.column.name: n for n, c in enumerate(table.columns, 1)}
    for item in catalog.of_kind(Sequence):
        if item.owned_by is not None and item.owned_by == (table.id, numbers.get(column)):
            return item
    return None


def _keys(session: Speaker, sequence: Sequence) -> tuple[str, ...]:
    """Return what a session knows a sequence by: one that it makes has no number yet."""
    return (str(sequence.id), f"new {sequence.name}")


def _is_local(session: Speaker, sequence: Sequence) -> bool:
    transaction = session.transaction
    return transaction is not None and sequence.id in transaction.draft().made


def take(session: Speaker, sequence: Sequence, count: int) -> Values[int]:
    """Return the next numbers of a sequence for a session."""
    _check_writable(session, "nextval")
    known, new = _keys(session, sequence)
    if _is_local(session, sequence):
        assert session.transaction is not None
        values = session.transaction.values.take(sequence, count)
        known = new
    else:
        values = session.core.sequences.take(sequence, count)
    if count:
        session.numbers.note(known, values[-1])
    return values


def set_value(session: Speaker, sequence: Sequence, position: Position) -> None:
    """Have a sequence go on from somewhere else; ``currval`` is that if it has been given."""
    _check_writable(session, "setval")
    known, new = _keys(session, sequence)
    if _is_local(session, sequence):
        assert session.transaction is not None
        session.transaction.values.set(sequence, position)
        known = new
    else:
        session.core.sequences.set(sequence, position)
    if position.called:
        session.numbers.note(known, position.last)


def current(session: Speaker, sequence: Sequence) -> int:
    """Return the number that the session was given last."""
    return session.numbers.current(sequence, _keys(session, sequence))


def check_may(session: Speaker, sequence: Sequence) -> None:
    """Refuse what a role may not do: whose a sequence is not needs UPDATE on it."""
    role = session.role
    if role is None or session.core.world.roles.has(role, "UPDATE", sequence):
        return
    message = f"permission denied for sequence {sequence.name}"
    hint = f"an admin can GRANT UPDATE ON {sequence.name} TO {role}"
    raise Forbidden(message, hint=hint)


def _check_writable(session: Speaker, function: str) -> None:
    if session.settings.get("transaction_read_only") == "on" or (
        session.transaction is None and session.settings.is_read_only
    ):
        message = f"cannot execute {function}() in a read-only transaction"
        raise InvalidTransactionState(message, code="25006", hint="leave out READ ONLY")
