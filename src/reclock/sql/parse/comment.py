"""COMMENT ON.

Tests: tests/session/test_comment.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported
from reclock.sql.statement.comment import Comment
from reclock.sql.statement.objects import KINDS
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor


def parse_comment(cursor: Cursor) -> Comment:
    """Read what follows COMMENT."""
    cursor.expect("ON")
    position = cursor.position
    if cursor.accept("COLUMN"):
        name = cursor.name()
        if len(name.parts) < 2:
            msg = "relation.column"
            raise cursor.error(msg)
        of = Name(name.parts[:-1], name.position)
        return Comment("relation", of, name.parts[-1], _text(cursor))
    for kind in KINDS:
        if cursor.accept(*kind.upper().split()):
            return Comment(kind, cursor.name(), None, _text(cursor))
    message = "COMMENT ON this kind of object is not supported"
    hint = "supported: TABLE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE, SOURCE, SINK and COLUMN"
    raise NotSupported(message, hint=hint, position=position)


def _text(cursor: Cursor) -> str | None:
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else cursor.string()
    cursor.end()
    return text or None
