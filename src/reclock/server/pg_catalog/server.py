"""The database, its schemas, roles and settings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from reclock.catalog.client_settings import CLIENT_SETTINGS
from reclock.catalog.settings import SETTINGS
from reclock.server.pg_catalog import oids
from reclock.server.pg_catalog.objects import NAMESPACES
from reclock.session.functions import DATABASE, OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.pg_catalog.objects import Objects
    from reclock.server.pg_catalog.row import Row

_HIDDEN: Final = "********"
_UTF8: Final = 6
_LIMITS: Final = {"max_index_keys": "32", "block_size": "8192", "max_connections": "100"}
"""Settings of PostgreSQL that drivers ask for, and that nothing here has."""


_KEYWORDS: Final = (
    "copy", "explain", "ilike", "index", "limit", "materialized", "offset", "reset", "show", "sink",
    "source", "subscribe",
)  # fmt: skip
"""Words of statements that the SQL standard does not have."""


def pg_get_keywords(objects: Objects) -> Iterator[Row]:
    """Yield words that are not the SQL standard's."""
    del objects
    for word in _KEYWORDS:
        yield {"word": word, "catcode": "U", "barelabel": True, "catdesc": "unreserved"}


def pg_database(objects: Objects) -> Iterator[Row]:
    """Yield the one database."""
    yield {
        "oid": oids.DATABASE,
        "datname": DATABASE,
        "datdba": objects.owner,
        "encoding": _UTF8,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": oids.TABLESPACE,
        "datcollate": "C",
        "datctype": "C",
        "datacl": objects.database_acl,
    }


def pg_tablespace(objects: Objects) -> Iterator[Row]:
    """Yield the one place where rows are."""
    yield {"oid": oids.TABLESPACE, "spcname": "pg_default", "spcowner": objects.owner}


def pg_namespace(objects: Objects) -> Iterator[Row]:
    """Yield schemas."""
    for name, oid in NAMESPACES.items():
        yield {"oid": oid, "nspname": name, "nspowner": objects.owner}


def pg_language(objects: Objects) -> Iterator[Row]:
    """Yield the one language that functions are written in: none of the user's."""
    yield {
        "oid": oids.LANGUAGE,
        "lanname": "internal",
        "lanowner": objects.owner,
    }


def pg_roles(objects: Objects) -> Iterator[Row]:
    """Yield roles; never a password."""
    for role in objects.role_rows:
        yield {
            "oid": role.oid,
            "rolname": role.name,
            "rolsuper": role.superuser,
            "rolinherit": True,
            "rolcreaterole": role.superuser,
            "rolcreatedb": False,
            "rolcanlogin": role.login,
            "rolbypassrls": role.superuser,
            "rolconnlimit": -1,
            "rolpassword": _HIDDEN,
        }


def pg_user(objects: Objects) -> Iterator[Row]:
    """Yield roles that can log in."""
    for role in objects.role_rows:
        if role.login:
            yield {
                "usename": role.name,
                "usesysid": role.oid,
                "usesuper": role.superuser,
                "usebypassrls": role.superuser,
                "passwd": _HIDDEN,
            }


def pg_settings(objects: Objects) -> Iterator[Row]:
    """Yield settings, as the session has them."""
    said = dict(objects.viewer.settings)
    for name, value, default, meaning, context in settings(objects):
        now = said.get(name, value)
        yield {
            "name": name,
            "setting": now,
            "category": "reclock",
            "short_desc": meaning,
            "context": context,
            "vartype": "string",
            "source": _source(now, value, default),
            "boot_val": default,
            "reset_val": value,
        }


def pg_stat_activity(objects: Objects) -> Iterator[Row]:
    """Yield the sessions, as the viewer may see them."""
    if objects.viewer.reach is None:
        return
    numbers = {role.name: role.oid for role in objects.role_rows}
    for seen in objects.viewer.reach.rows():
        name = seen.role or OWNER
        yield {
            "datid": oids.DATABASE,
            "datname": DATABASE,
            "pid": seen.pid,
            "usesysid": numbers.get(name, objects.owner),
            "usename": name,
            "application_name": seen.application,
            "client_addr": seen.address,
            "backend_start": _moment(seen.started),
            "query_start": _moment(seen.asked),
            "state": seen.state,
            "query": seen.query,
            "backend_type": "client backend",
        }


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1_000, UTC)


def _source(now: str, value: str, default: str) -> str:
    if now != value:
        return "session"
    return "default" if value == default else "configuration file"


def settings(objects: Objects) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield names, values, defaults, meanings and who may change them."""
    for name, known in SETTINGS.items():
        context = "user" if known.session else "sighup"
        yield name, objects.settings.get(name), known.default, known.description, context
    for name, client in CLIENT_SETTINGS.items():
        yield name, client.default, client.default, "for clients of PostgreSQL", "user"
    for name, value in _LIMITS.items():
        yield name, value, value, "for clients of PostgreSQL", "internal"
