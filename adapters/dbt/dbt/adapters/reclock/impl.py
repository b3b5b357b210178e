"""The adapter: relations, and what is true of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.base import ConstraintSupport, available
from dbt.adapters.contracts.relation import RelationType  # noqa: TC002 - dbt reads the types of fields
from dbt.adapters.postgres.impl import PostgresAdapter
from dbt.adapters.postgres.relation import PostgresRelation
from dbt.adapters.reclock.connections import ReclockConnectionManager
from dbt_common.contracts.constraints import ConstraintType
from sqlparse import parse
from sqlparse.tokens import Comment, Whitespace


@dataclass(frozen=True, eq=False, repr=False)
class ReclockRelation(PostgresRelation):
    """A table, a view, a materialized view, or (``external``) a source.

    None is built under another name and renamed: what depends on a model depends on the object.
    """

    renameable_relations: frozenset[RelationType] = field(default_factory=frozenset)
    replaceable_relations: frozenset[RelationType] = field(default_factory=frozenset)


class ReclockAdapter(PostgresAdapter):
    """What dbt asks of a database."""

    Relation = ReclockRelation
    ConnectionManager = ReclockConnectionManager

    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - dbt's name for it
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    def valid_incremental_strategies(self) -> list[str]:
        """Return none: a materialized view is incremental by itself."""
        return []

    @available
    def commit_if_begun(self) -> None:
        """Commit, if anything has begun a transaction: a model that is as it was has not."""
        if self.connections.get_thread_connection().transaction_open:
            self.connections.commit()

    @available
    def is_same_query(self, one: str, other: str) -> bool:
        """Return whether two queries differ in comments and blanks at most."""
        return _words(one) == _words(other)


def _words(query: str) -> list[str]:
    """Return what a query is made of, but comments, blanks and its end."""
    words = [token for statement in parse(query) for token in statement.flatten()]
    kept = [w for w in words if w.ttype not in Comment and w.ttype not in Whitespace]
    return [word.value for word in kept if word.value != ";"]
