"""PostgreSQL's lists for people: ``pg_tables``, ``pg_views``, ``pg_matviews``, ``pg_indexes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.serial.item import Sequence
from reclock.session.functions import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.pg_catalog.objects import Objects
    from reclock.server.pg_catalog.row import Row


def pg_tables(objects: Objects) -> Iterator[Row]:
    """Yield tables."""
    for relation in objects.relations:
        if relation.kind == "r":
            yield {
                "schemaname": relation.schema,
                "tablename": relation.name,
                "tableowner": relation.owner,
                "hasindexes": bool(relation.keys),
            }


def pg_views(objects: Objects) -> Iterator[Row]:
    """Yield views."""
    for relation in objects.relations:
        if relation.kind == "v":
            yield {
                "schemaname": relation.schema,
                "viewname": relation.name,
                "viewowner": relation.owner,
                "definition": relation.definition,
            }


def pg_matviews(objects: Objects) -> Iterator[Row]:
    """Yield materialized views."""
    for relation in objects.of_users:
        if relation.kind == "m":
            yield {
                "schemaname": relation.schema,
                "matviewname": relation.name,
                "matviewowner": relation.owner,
                "hasindexes": bool(relation.keys),
                "ispopulated": True,
                "definition": relation.definition,
            }


def pg_indexes(objects: Objects) -> Iterator[Row]:
    """Yield indexes."""
    for relation in objects.of_users:
        for key in relation.keys:
            yield {
                "schemaname": relation.schema,
                "tablename": relation.name,
                "indexname": key.name,
                "indexdef": relation.index_text(key),
            }


def pg_stat_user_tables(objects: Objects) -> Iterator[Row]:
    """Yield tables; nothing is counted."""
    for relation in objects.of_users:
        if relation.kind in "rm":
            yield {"relid": relation.oid, "schemaname": relation.schema, "relname": relation.name}


def pg_sequences(objects: Objects) -> Iterator[Row]:
    """Yield sequences; where one is, is not of the catalog."""
    for sequence in objects.catalog.of_kind(Sequence):
        yield {
            "schemaname": "public",
            "sequencename": sequence.name,
            "sequenceowner": sequence.owner or OWNER,
            "data_type": sequence.type,
            "start_value": sequence.start,
            "min_value": sequence.minimum,
            "max_value": sequence.maximum,
            "increment_by": sequence.increment,
            "cycle": sequence.cycle,
            "cache_size": sequence.cache,
            "last_value": None,
        }
