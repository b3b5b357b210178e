"""Relations and their columns: ``pg_class``, ``pg_attribute`` and what belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Index
from reclock.catalog.serial.item import Sequence
from reclock.server.pg_catalog import oids
from reclock.server.pg_catalog.types import KINDS
from reclock.sql.pg.oid import oid_of
from reclock.sql.types import parse_simple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.pg_catalog.objects import Attribute, Objects, Relation
    from reclock.server.pg_catalog.row import Row

_PG_CLASS: Final = 1259


def pg_class(objects: Objects) -> Iterator[Row]:
    """Yield relations and indexes."""
    for relation in objects.relations:
        stored = relation.kind in "rm"
        yield {
            "oid": relation.oid,
            "relname": relation.name,
            "relnamespace": relation.namespace,
            "relowner": objects.owner_of(relation),
            "relam": oids.HEAP if stored else 0,
            "reltuples": -1.0,
            "relhasindex": bool(relation.keys),
            "relpersistence": "p",
            "relkind": relation.kind,
            "relnatts": len(relation.attributes),
            "relchecks": len(relation.checks),
            "relhasrules": relation.kind == "v",
            "relispopulated": True,
            "relreplident": "d" if stored else "n",
            "relacl": None if relation.id is None else objects.acl(relation.id),
        }
        for key in relation.keys:
            yield {
                "oid": key.oid,
                "relname": key.name,
                "relnamespace": relation.namespace,
                "relowner": objects.owner_of(relation),
                "relam": oids.BTREE,
                "reltuples": -1.0,
                "relpersistence": "p",
                "relkind": "i",
                "relnatts": len(key.columns),
                "relispopulated": True,
                "relreplident": "n",
            }


def pg_attribute(objects: Objects) -> Iterator[Row]:
    """Yield the columns of relations, and of indexes."""
    for relation in objects.relations:
        for attribute in relation.attributes:
            yield _column(relation.oid, attribute.number, attribute)
        for key in relation.keys:
            for number, of in enumerate(key.columns, 1):
                row = _column(key.oid, number, relation.attributes[of - 1])
                yield row | {"attnotnull": False, "atthasdef": False}


def _column(relation: int, number: int, attribute: Attribute) -> Row:
    kind = KINDS[attribute.type]
    return {
        "attrelid": relation,
        "attname": attribute.name,
        "atttypid": attribute.type,
        "attstattarget": -1,
        "attlen": kind.length,
        "attnum": number,
        "attndims": int(kind.element != 0),
        "attcacheoff": -1,
        "atttypmod": attribute.modifier,
        "attbyval": 0 < kind.length <= 8,
        "attalign": kind.alignment,
        "attstorage": kind.storage,
        "attnotnull": not attribute.nullable,
        "atthasdef": attribute.default is not None,
        "attidentity": {"always": "a", "by default": "d"}.get(attribute.identity or "", ""),
        "attislocal": True,
        "attcollation": kind.collation,
    }


def pg_attrdef(objects: Objects) -> Iterator[Row]:
    """Yield the defaults of columns."""
    for relation in objects.of_users:
        for attribute in relation.attributes:
            if attribute.default is not None:
                yield {
                    "oid": oids.of_default(relation.oid, attribute.number),
                    "adrelid": relation.oid,
                    "adnum": attribute.number,
                    "adbin": attribute.default,
                }


def pg_index(objects: Objects) -> Iterator[Row]:
    """Yield indexes."""
    for relation in objects.of_users:
        for key in relation.keys:
            kinds = [KINDS[relation.attributes[number - 1].type] for number in key.columns]
            yield {
                "indexrelid": key.oid,
                "indrelid": relation.oid,
                "indnatts": len(key.columns),
                "indnkeyatts": len(key.columns),
                "indisunique": key.unique,
                "indnullsnotdistinct": not key.nulls_distinct,
                "indisprimary": key.primary,
                "indimmediate": True,
                "indisvalid": key.valid,
                "indisready": True,
                "indislive": True,
                "indkey": list(key.columns),
                "indcollation": [kind.collation for kind in kinds],
                "indclass": [kind.operators for kind in kinds],
                "indoption": [0] * len(key.columns),
            }


def pg_constraint(objects: Objects) -> Iterator[Row]:
    """Yield primary keys, UNIQUE constraints, and CHECKs."""
    for relation in objects.of_users:
        for number, check in enumerate(relation.checks):
            yield {
                "oid": oids.of_check(relation.oid, number),
                "conname": check.name,
                "connamespace": relation.namespace,
                "contype": "c",
                "convalidated": True,
                "conrelid": relation.oid,
                "confupdtype": " ",
                "confdeltype": " ",
                "confmatchtype": " ",
                "conislocal": True,
                "conkey": [at + 1 for at in check.columns],
                "conbin": f"({check.text})",
            }
        for key in relation.constraints:
            yield {
                "oid": key.constraint,
                "conname": key.name,
                "connamespace": relation.namespace,
                "contype": "p" if key.primary else "u",
                "convalidated": key.valid,
                "conrelid": relation.oid,
                "conindid": key.oid,
                "confupdtype": " ",
                "confdeltype": " ",
                "confmatchtype": " ",
                "conislocal": True,
                "connoinherit": True,
                "conkey": list(key.columns),
            }


def pg_rewrite(objects: Objects) -> Iterator[Row]:
    """Yield the rules that views are."""
    for relation in objects.of_users:
        if relation.definition is not None:
            yield {
                "oid": oids.of_rule(relation.oid),
                "rulename": "_RETURN",
                "ev_class": relation.oid,
                "ev_type": "1",
                "ev_enabled": "O",
                "is_instead": True,
            }


def pg_depend(objects: Objects) -> Iterator[Row]:
    """Yield what depends on what."""
    for item in objects.catalog.items.values():
        for needed in sorted(item.depends):
            if needed in objects.catalog.items:
                yield {
                    "classid": _PG_CLASS,
                    "objid": oids.of_object(item.id),
                    "refclassid": _PG_CLASS,
                    "refobjid": oids.of_object(needed),
                    "deptype": "n",
                }
    for sequence in objects.catalog.of_kind(Sequence):
        if sequence.owned_by is not None:
            yield {
                "classid": _PG_CLASS,
                "objid": oids.of_object(sequence.id),
                "refclassid": _PG_CLASS,
                "refobjid": oids.of_object(sequence.owned_by.table),
                "refobjsubid": sequence.owned_by.column,
                "deptype": "i" if objects.is_identity(sequence) else "a",
            }


def pg_sequence(objects: Objects) -> Iterator[Row]:
    """Yield sequences."""
    for sequence in objects.catalog.of_kind(Sequence):
        yield {
            "seqrelid": oids.of_object(sequence.id),
            "seqtypid": oid_of(parse_simple(sequence.type)),
            "seqstart": sequence.start,
            "seqincrement": sequence.increment,
            "seqmax": sequence.maximum,
            "seqmin": sequence.minimum,
            "seqcache": sequence.cache,
            "seqcycle": sequence.cycle,
        }


def pg_description(objects: Objects) -> Iterator[Row]:
    """Yield what relations and columns mean: those of the system say so."""
    for oid, number, text in comments(objects):
        yield {"objoid": oid, "classoid": _PG_CLASS, "objsubid": number, "description": text}


def comments(objects: Objects) -> Iterator[tuple[int, int, str]]:
    """Yield relations, numbers of columns (0 for the relation), and what they mean."""
    for relation in objects.relations:
        if relation.comment is not None:
            yield relation.oid, 0, relation.comment
        for attribute in relation.attributes:
            if attribute.comment is not None:
                yield relation.oid, attribute.number, attribute.comment
    for index in objects.catalog.of_kind(Index):
        if (text := index.comments.get("")) is not None:
            yield oids.of_object(index.id), 0, text


def pg_foreign_table(objects: Objects) -> Iterator[Row]:
    """Yield sources: tables whose rows come from elsewhere."""
    for relation, server in _foreign(objects):
        yield {"ftrelid": relation.oid, "ftserver": servers(objects)[server]}


def pg_foreign_server(objects: Objects) -> Iterator[Row]:
    """Yield the kinds of sources."""
    for name, oid in servers(objects).items():
        yield {"oid": oid, "srvname": name, "srvowner": objects.owner, "srvfdw": oid}


def pg_foreign_data_wrapper(objects: Objects) -> Iterator[Row]:
    """Yield the kinds of sources, again."""
    for name, oid in servers(objects).items():
        yield {"oid": oid, "fdwname": name, "fdwowner": objects.owner}


def servers(objects: Objects) -> dict[str, int]:
    """Return the kinds of sources that there are, and their numbers."""
    names = sorted({server for _, server in _foreign(objects)})
    return {name: oids.SERVERS + number for number, name in enumerate(names)}


def _foreign(objects: Objects) -> Iterator[tuple[Relation, str]]:
    for relation in objects.of_users:
        if relation.server is not None:
            yield relation, relation.server
