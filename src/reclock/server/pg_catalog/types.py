"""Types: ``pg_type``, with the numbers that PostgreSQL gives them, and how they are ordered.

Tests: tests/server/pg_catalog/test_rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.server.pg_catalog import oids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reclock.server.pg_catalog.objects import Objects
    from reclock.server.pg_catalog.row import Row

ARRAY_IN: Final = 750
_C: Final = 950
_ELEMENTS: Final = {19: 18, 22: 21, 30: 26}
"""What types have inside that are no arrays: names and vectors."""

_PREFERRED: Final = {"bool", "float8", "interval", "oid", "text", "timestamptz"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A type; ``element`` is what an array has, ``array`` the type of arrays of it."""

    oid: int
    name: str
    title: str
    length: int
    category: str
    array: int = 0
    element: int = 0

    @property
    def collation(self) -> int:
        """How values are ordered; 0 if in one way only."""
        if self.element:
            return KINDS[self.element].collation
        return _C if self.name == "name" else oids.COLLATION if self.category == "S" else 0

    @property
    def operators(self) -> int:
        """The class of operators by which an index orders values."""
        return 10_000 + self.oid

    @property
    def alignment(self) -> str:
        """How values are aligned in PostgreSQL's memory."""
        if self.element:
            return "d" if KINDS[self.element].alignment == "d" else "i"
        if self.name in {"record", "anyarray"}:
            return "d"
        return {1: "c", 2: "s", 8: "d", 16: "d", 64: "c", -2: "c"}.get(self.length, "i")

    @property
    def storage(self) -> str:
        """How long values are stored in PostgreSQL."""
        plain = self.length != -1 or self.oid in _ELEMENTS
        return "p" if plain else "m" if self.name == "numeric" else "x"


_BASE: Final = """
16 bool boolean 1 B 1000
17 bytea bytea -1 U 1001
18 char "char" 1 Z 1002
19 name name 64 S 1003
20 int8 bigint 8 N 1016
21 int2 smallint 2 N 1005
22 int2vector int2vector -1 A 1006
23 int4 integer 4 N 1007
24 regproc regproc 4 N 1008
25 text text -1 S 1009
26 oid oid 4 N 1028
28 xid xid 4 U 1011
30 oidvector oidvector -1 A 1013
114 json json -1 U 199
700 float4 real 4 N 1021
701 float8 double_precision 8 N 1022
705 unknown unknown -2 X 0
1042 bpchar bpchar -1 S 1014
1043 varchar character_varying -1 S 1015
1082 date date 4 D 1182
1114 timestamp timestamp_without_time_zone 8 D 1115
1184 timestamptz timestamp_with_time_zone 8 D 1185
1186 interval interval 16 T 1187
1700 numeric numeric -1 N 1231
2205 regclass regclass 4 N 2210
2206 regtype regtype 4 N 2211
2249 record record -1 P 2287
2276 any "any" 4 P 0
2277 anyarray anyarray -1 P 0
2278 void void 4 P 0
2279 trigger trigger 4 P 0
2283 anyelement anyelement 4 P 0
3802 jsonb jsonb -1 U 3807
4089 regnamespace regnamespace 4 N 4090
4096 regrole regrole 4 N 4097
"""


_RECEIVES: Final = """
bool 2436 boolrecv, bytea 2412 bytearecv, char 2434 charrecv, name 2422 namerecv,
int8 2408 int8recv, int2 2404 int2recv, int2vector 2410 int2vectorrecv, int4 2406 int4recv,
text 2414 textrecv,
oid 2418 oidrecv, oidvector 2420 oidvectorrecv, json 324 json_recv, float4 2424 float4recv,
float8 2426 float8recv, bpchar 2430 bpcharrecv, varchar 2432 varcharrecv, date 2468 date_recv,
timestamp 2474 timestamp_recv, timestamptz 2476 timestamptz_recv, interval 2478 interval_recv,
numeric 2460 numeric_recv, record 2402 record_recv, jsonb 3805 jsonb_recv
"""
RECEIVES: Final[Mapping[str, tuple[int, str]]] = {
    name: (int(oid), function)
    for name, oid, function in (part.split() for part in _RECEIVES.split(","))
}
"""What reads values of a type that are binary: clients know types by it."""

ARRAY_RECEIVE: Final = 2400


def _kinds() -> Iterator[Kind]:
    for line in _BASE.strip().split("\n"):
        oid, name, title, length, category, array = line.split()
        shown = title.replace("_", " ")
        yield Kind(int(oid), name, shown, int(length), category, int(array))
        if int(array):
            pseudo = "P" if category == "P" else "A"
            yield Kind(int(array), f"_{name}", f"{shown}[]", -1, pseudo, element=int(oid))


KINDS: Final[Mapping[int, Kind]] = {kind.oid: kind for kind in _kinds()}
"""All types, by number."""


def pg_type(objects: Objects) -> Iterator[Row]:
    """Yield types."""
    for kind in KINDS.values():
        is_array = kind.element != 0
        yield {
            "oid": kind.oid,
            "typname": kind.name,
            "typnamespace": oids.PG_CATALOG,
            "typowner": objects.owner,
            "typlen": kind.length,
            "typbyval": 0 < kind.length <= 8,
            "typtype": "p" if kind.category in "PX" else "b",
            "typcategory": kind.category,
            "typispreferred": kind.name in _PREFERRED,
            "typisdefined": True,
            "typdelim": ",",
            "typelem": kind.element or _ELEMENTS.get(kind.oid, 0),
            "typarray": kind.array,
            "typinput": ARRAY_IN if is_array else 0,
            "typreceive": ARRAY_RECEIVE if is_array else RECEIVES.get(kind.name, (0, ""))[0],
            "typalign": kind.alignment,
            "typstorage": kind.storage,
            "typtypmod": -1,
            "typcollation": kind.collation,
        }


def pg_am(objects: Objects) -> Iterator[Row]:
    """Yield how rows are stored, and indexes."""
    del objects
    yield {"oid": oids.HEAP, "amname": "heap", "amtype": "t"}
    yield {"oid": oids.BTREE, "amname": "btree", "amtype": "i"}


def pg_collation(objects: Objects) -> Iterator[Row]:
    """Yield the one order that text has: that of its bytes."""
    for oid, name in ((oids.COLLATION, "default"), (_C, "C"), (951, "POSIX")):
        yield {
            "oid": oid,
            "collname": name,
            "collnamespace": oids.PG_CATALOG,
            "collowner": objects.owner,
            "collprovider": "d" if oid == oids.COLLATION else "c",
            "collisdeterministic": True,
            "collencoding": -1,
            "collcollate": "C",
            "collctype": "C",
        }


def pg_opclass(objects: Objects) -> Iterator[Row]:
    """Yield how indexes order values, one way for each type."""
    for kind in KINDS.values():
        if kind.category not in "PX":
            yield {
                "oid": kind.operators,
                "opcmethod": oids.BTREE,
                "opcname": f"{kind.name}_ops",
                "opcnamespace": oids.PG_CATALOG,
                "opcowner": objects.owner,
                "opcintype": kind.oid,
                "opcdefault": True,
            }
