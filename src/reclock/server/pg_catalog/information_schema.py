"""``information_schema``: the same, as the SQL standard describes a database.

Each one sees what he owns or has a privilege on, the texts of his own views, and privileges that
are his, everybody's or on what is his; who may do everything sees all.

Tests: tests/server/pg_catalog/test_rows.py, tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.catalog.roles import PUBLIC
from reclock.catalog.serial.item import Sequence
from reclock.ids import ObjectId
from reclock.server.pg_catalog.objects import NAMESPACES
from reclock.server.pg_catalog.types import KINDS
from reclock.session.functions import DATABASE, OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.pg_catalog.objects import Attribute, Objects, Relation
    from reclock.server.pg_catalog.row import Row

_TYPES: Final = {"r": "BASE TABLE", "v": "VIEW", "f": "FOREIGN", "m": "MATERIALIZED VIEW"}
_DIGITS: Final = {21: (16, 0), 23: (32, 0), 20: (64, 0), 700: (24, None), 701: (53, None)}
_NUMERIC: Final = 1700
_TEXT: Final = 25
_VARCHAR: Final = 1043
_BPCHAR: Final = 1042
_TITLES: Final = {_BPCHAR: "character"}
_PRECISION: Final = {"smallint": 16, "integer": 32, "bigint": 64}
_TIMES: Final = {1114: 6, 1184: 6, 1186: 6, 1082: 0}


def _of(relation: Relation, prefix: str = "table") -> Row:
    return {
        f"{prefix}_catalog": DATABASE,
        f"{prefix}_schema": relation.schema,
        f"{prefix}_name": relation.name,
    }


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def schemata(objects: Objects) -> Iterator[Row]:
    """Yield schemas."""
    del objects
    for name in NAMESPACES:
        yield {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER}


def catalog_name(objects: Objects) -> Iterator[Row]:
    """Yield the name of the database."""
    del objects
    yield {"catalog_name": DATABASE}


def tables(objects: Objects) -> Iterator[Row]:
    """Yield relations; materialized views too, which PostgreSQL leaves out."""
    for relation in objects.shown:
        yield _of(relation) | {
            "table_type": _TYPES[relation.kind],
            "is_insertable_into": _yes(relation.id is not None and relation.kind == "r"),
            "is_typed": "NO",
        }


def columns(objects: Objects) -> Iterator[Row]:
    """Yield columns."""
    for relation in objects.shown:
        writable = relation.id is not None and relation.kind == "r"
        for attribute in relation.attributes:
            yield _of(relation) | _column(attribute) | {"is_updatable": _yes(writable)}


def _column(attribute: Attribute) -> Row:
    kind = KINDS[attribute.type]
    row: Row = {
        "column_name": attribute.name,
        "ordinal_position": attribute.number,
        "column_default": attribute.default,
        "is_nullable": _yes(attribute.nullable),
        "data_type": "ARRAY" if kind.element else _TITLES.get(kind.oid, kind.title),
        "character_maximum_length": None,
        "character_octet_length": None,
        "numeric_precision": None,
        "numeric_precision_radix": None,
        "numeric_scale": None,
        "datetime_precision": _TIMES.get(kind.oid),
        "interval_precision": None,
        "maximum_cardinality": None,
        "udt_catalog": DATABASE,
        "udt_schema": "pg_catalog",
        "udt_name": kind.name,
        "dtd_identifier": str(attribute.number),
        "is_self_referencing": "NO",
        "is_identity": _yes(attribute.identity is not None),
        "identity_cycle": "NO",
        "is_generated": "NEVER",
    }
    if attribute.identity is not None and attribute.sequence is not None:
        sequence = attribute.sequence
        row |= {
            "identity_generation": attribute.identity.upper(),
            "identity_start": str(sequence.start),
            "identity_increment": str(sequence.increment),
            "identity_maximum": str(sequence.maximum),
            "identity_minimum": str(sequence.minimum),
            "identity_cycle": _yes(sequence.cycle),
        }
    if kind.oid in _DIGITS:
        precision, scale = _DIGITS[kind.oid]
        row |= {"numeric_precision": precision, "numeric_scale": scale}
        row["numeric_precision_radix"] = 2
    elif kind.oid == _NUMERIC and attribute.modifier >= 4:
        digits = attribute.modifier - 4
        row |= {"numeric_precision": digits >> 16, "numeric_scale": digits & 0xFFFF}
        row["numeric_precision_radix"] = 10
    elif kind.oid == _TEXT:
        row["character_octet_length"] = 1 << 30
    elif kind.oid in {_VARCHAR, _BPCHAR} and attribute.modifier >= 4:
        length = attribute.modifier - 4
        row |= {"character_maximum_length": length, "character_octet_length": 4 * length}
    return row


def views(objects: Objects) -> Iterator[Row]:
    """Yield views; the text of one is its owner's."""
    for relation in objects.shown:
        if relation.kind == "v":
            no = dict.fromkeys(
                ("is_updatable", "is_insertable_into", "is_trigger_updatable",
                 "is_trigger_deletable", "is_trigger_insertable_into"), "NO",
            )  # fmt: skip
            text = relation.definition if objects.owns(relation) else None
            shown = {"view_definition": text, "check_option": "NONE"}
            yield _of(relation) | shown | no


def check_constraints(objects: Objects) -> Iterator[Row]:
    """Yield CHECKs."""
    for relation in objects.shown:
        for check in relation.checks:
            yield {
                "constraint_catalog": DATABASE,
                "constraint_schema": relation.schema,
                "constraint_name": check.name,
                "check_clause": f"(({check.text}))",
            }


def sequences(objects: Objects) -> Iterator[Row]:
    """Yield sequences, but for those of identity columns."""
    for relation in objects.of_users:
        if relation.kind != "S" or not objects.owns(relation):
            continue
        sequence = objects.catalog[ObjectId(relation.id or "")]
        assert isinstance(sequence, Sequence)
        if objects.is_identity(sequence):
            continue
        yield _of(relation, "sequence") | {
            "data_type": sequence.type,
            "numeric_precision": _PRECISION[sequence.type],
            "numeric_precision_radix": 2,
            "numeric_scale": 0,
            "start_value": str(sequence.start),
            "minimum_value": str(sequence.minimum),
            "maximum_value": str(sequence.maximum),
            "increment": str(sequence.increment),
            "cycle_option": _yes(sequence.cycle),
        }


def table_constraints(objects: Objects) -> Iterator[Row]:
    """Yield primary keys, UNIQUE constraints, and CHECKs."""
    for relation in objects.shown:
        for check in relation.checks:
            yield _of(relation) | {
                "constraint_catalog": DATABASE,
                "constraint_schema": relation.schema,
                "constraint_name": check.name,
                "constraint_type": "CHECK",
                "is_deferrable": "NO",
                "initially_deferred": "NO",
                "enforced": "YES",
            }
        for key in relation.constraints:
            yield _of(relation) | {
                "constraint_catalog": DATABASE,
                "constraint_schema": relation.schema,
                "constraint_name": key.name,
                "constraint_type": "PRIMARY KEY" if key.primary else "UNIQUE",
                "is_deferrable": "NO",
                "initially_deferred": "NO",
                "enforced": _yes(key.valid),
                "nulls_distinct": None if key.primary else _yes(key.nulls_distinct),
            }


def key_column_usage(objects: Objects) -> Iterator[Row]:
    """Yield the columns of primary keys and UNIQUE constraints."""
    for relation in objects.shown:
        for key in relation.constraints:
            for place, name in enumerate(relation.key_names(key), 1):
                yield _of(relation) | {
                    "constraint_catalog": DATABASE,
                    "constraint_schema": relation.schema,
                    "constraint_name": key.name,
                    "column_name": name,
                    "ordinal_position": place,
                    "position_in_unique_constraint": None,
                }


def table_privileges(objects: Objects) -> Iterator[Row]:
    """Yield who may do what, by GRANT."""
    for relation in objects.of_users:
        assert relation.id is not None
        for name, given in objects.granted(relation.id):
            if not objects.owns(relation) and name not in {PUBLIC, objects.viewer.role}:
                continue
            for privilege in given:
                yield _of(relation) | {
                    "grantor": OWNER,
                    "grantee": "PUBLIC" if name == PUBLIC else name,
                    "privilege_type": privilege,
                    "is_grantable": "NO",
                    "with_hierarchy": _yes(privilege == "SELECT"),
                }


def enabled_roles(objects: Objects) -> Iterator[Row]:
    """Yield the roles that one is: all, if one may do everything."""
    for role in objects.role_rows:
        if objects.viewer.role in {None, role.name}:
            yield {"role_name": role.name}
