"""COMMENT ON: what an object, or a column, means; kept with the object.

Tests: tests/session/test_comment.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Item, RelationItem
from reclock.errors import UndefinedName
from reclock.rows.result import Result
from reclock.session.statements.alter_table import in_transaction
from reclock.session.statements.drop import kind_of

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import Comment


def comment(context: Context, statement: Comment) -> Result:
    """Keep a text with an object, or take it away."""

    def step(draft: Draft) -> tuple[Draft, bool]:
        context.session.check_rights(statement, context.parameters, draft)
        column = statement.column
        item: Item
        if column is None:
            item = draft.catalog.get(statement.name, kind_of(statement.kind))
        else:
            relation = draft.catalog.get(statement.name, RelationItem)
            if column not in relation.schema.names:
                message = f'column "{column}" of relation "{relation.name}" does not exist'
                hint = f"there are the columns {', '.join(relation.schema.names)}"
                raise UndefinedName(message, hint=hint, position=statement.name.position)
            item = relation
        known = {name: text for name, text in item.comments.items() if name != (column or "")}
        if statement.text is not None:
            known[column or ""] = statement.text
        return draft.edited([replace(item, comments=known)]), True

    def run() -> None:
        assert context.transaction is not None
        context.transaction.run(step)

    in_transaction(context, run)
    return Result("COMMENT")
