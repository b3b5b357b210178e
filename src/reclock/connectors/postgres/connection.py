"""Connections to a PostgreSQL server, and what goes wrong with them, in our words.

A ``Connection`` is a value that travels to tasks: a connection string and a password that is
shown nowhere. ``sql`` opens a session for queries, ``replication`` one that speaks the replication
protocol; both write times, intervals and bytes in one way, whatever the server's settings, and
refuse to hide rows by a policy (row security): the log has all of them. Of several hosts the
primary is meant, unless ``target_session_attrs`` says otherwise.

Both are psycopg's, over libpq, which speaks the replication protocol too (``stream``). Tasks copy
with ADBC, which reads ``COPY … (FORMAT binary)`` into Arrow.

Errors. ``SourceUnavailable`` has the code of the server where it refuses (28P01, 42501, 3D000,
55006 …) and 08006 where it does not answer: all of these are tried again. What is lost for good is
said by those who know it (``slot``, ``stream``).

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import InvalidValue, NotSupported, SourceUnavailable
from reclock.secret import Secret, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

_SESSION: Final = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c bytea_output=hex "
    "-c extra_float_digits=3 -c statement_timeout=0 -c idle_in_transaction_session_timeout=0 "
    "-c row_security=off"
)
"""One way to write values, whatever the server or the role has; and all rows, or an error."""

_KEPT_ALIVE: Final = {
    "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
}  # fmt: skip
CONNECT_SECONDS: Final = 10
_HINTS: Final = {
    "28P01": "see that the user and PASSWORD SECRET '…' are right",
    "22023": "see that each parameter has a value that libpq knows",
    "28000": "see that the user is right, and that pg_hba.conf lets it in with this TLS mode",
    "42501": "ALTER ROLE … REPLICATION, and GRANT SELECT on the tables, or use another role",
    "3D000": "see that dbname is right",
    "55006": "see that no other program reads this slot; reclock tries again by itself",
    "53400": "raise max_replication_slots or max_wal_senders, or drop a slot that is not used",
    "53300": "raise max_wal_senders or max_connections",
    "55000": "ALTER SYSTEM SET wal_level = logical, then restart the server",
}
UNREACHED: Final = (
    "see that host and port are right and that the server runs; what exists already is tried "
    "again by itself"
)


@dataclass(frozen=True)
class Connection:
    """How to get at a database; ``password`` is not part of the text."""

    text: str
    password: Secret | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of libpq."""
        made = {"connect_timeout": str(CONNECT_SECONDS), "application_name": "reclock"}
        made |= _KEPT_ALIVE | parsed(self.text)
        made["options"] = f"{made.get('options', '')} {_SESSION}".strip()
        made["client_encoding"] = "UTF8"
        if any("," in made.get(name, "") for name in ("host", "hostaddr")):
            made.setdefault("target_session_attrs", "primary")
        if self.password is not None:
            made["password"] = self.password.reveal()
        return made

    @property
    def uri(self) -> str:
        """The parameters as one text, for clients that take no others."""
        return " ".join(f"{name}={_quoted(value)}" for name, value in self.parameters.items())

    @property
    def shown(self) -> str:
        """Where the database is, for messages."""
        found = parsed(self.text)
        where = found.get("host") or found.get("hostaddr") or "the local socket"
        port = f":{found['port']}" if "port" in found else ""
        return f'database "{found.get("dbname", "")}" at {where}{port}'

    def sql(self) -> Any:
        """Open a session for queries, each its own transaction."""
        with self.told():
            return client().connect(**self.parameters, autocommit=True)

    def replication(self) -> Any:
        """Open a session that speaks the replication protocol."""
        with self.told():
            return client().connect(**self.parameters, autocommit=True, replication="database")

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say what the client library reports as an error of ours."""
        library = client()
        try:
            yield
        except library.Error as error:
            raise self.failure(error) from error

    def failure(self, error: Exception) -> SourceUnavailable:
        """Return the error to raise for what the client library reports."""
        said = " ".join(self.scrubbed(str(error)).split())
        code = getattr(error, "sqlstate", None) or _code_in(said)
        if code is None or code.startswith(("08", "57")):
            message = f"PostgreSQL does not answer: {self.shown}"
            return SourceUnavailable(message, detail=said, hint=UNREACHED)
        message = f"PostgreSQL refuses: {self.shown}"
        hint = _HINTS.get(code, "see the detail; reclock tries again by itself")
        return SourceUnavailable(message, detail=said, hint=hint, code=code)

    def scrubbed(self, text: str) -> str:
        """Return a text of others without the password."""
        return scrub(text, [] if self.password is None else [self.password])


def parsed(text: str) -> dict[str, str]:
    """Return the parameters of a connection string or URI; refuse one with a password in it.

    >>> sorted(parsed("host=db dbname=bank").items())
    [('dbname', 'bank'), ('host', 'db')]
    """
    library = client()
    try:
        found: dict[str, str] = library.conninfo.conninfo_to_dict(text)
    except library.ProgrammingError as error:
        message = "invalid connection string for PostgreSQL"
        hint = "write 'host=… port=… dbname=… user=…', as libpq takes it"
        raise InvalidValue(message, detail=" ".join(str(error).split()), hint=hint) from error
    if "password" in found:
        message = "the connection string must not contain a password"
        raise InvalidValue(message, hint="write PASSWORD SECRET '…' after it")
    return found


def client() -> Any:
    """Return psycopg, or say how to get it."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "the libraries that read PostgreSQL are not installed"
        raise NotSupported(message, hint="pip install 'reclock[postgres]'") from error
    return psycopg


def identifier(*names: str) -> str:
    """Return a name as SQL writes it.

    >>> identifier("public", 'it"s')
    '"public"."it""s"'
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def text(value: str) -> str:
    """Return a text as SQL writes it.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _code_in(said: str) -> str | None:
    """Return the code that libpq does not tell of a connection that was refused."""
    for words, code in _REFUSALS.items():
        if words in said:
            return code
    return None


_REFUSALS: Final = {
    "connection is bad: invalid": "22023",
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    'role "': "28000",
    "SSL": "28000",
    "certificate": "28000",
    "must be superuser or replication role": "42501",
    "permission denied to start WAL sender": "42501",
    "does not exist": "3D000",
    "too many clients": "53300",
    "remaining connection slots": "53300",
}
