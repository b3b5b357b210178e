"""Connections: transactions are those that dbt begins, not those of the driver.

psycopg2 begins a transaction before every statement. CREATE SOURCE and CREATE SINK cannot be in
one, so the driver is told to begin none; BEGIN, COMMIT and ROLLBACK are then statements.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.postgres.connections import PostgresConnectionManager, PostgresCredentials


@dataclass
class ReclockCredentials(PostgresCredentials):
    """Where ``reclock serve`` listens, and who asks."""

    database: str = "reclock"
    schema: str = "public"
    host: str = "127.0.0.1"
    user: str = "reclock"
    port: int = 6875
    password: str = ""

    @property
    def type(self) -> str:
        """The name of the adapter in a profile."""
        return "reclock"


class ReclockConnectionManager(PostgresConnectionManager):
    """Opens connections that begin no transaction by themselves."""

    TYPE = "reclock"

    @classmethod
    def open(cls, connection):
        """Open a connection, if it is not open."""
        connection = super().open(connection)
        if connection.handle is not None and not connection.handle.autocommit:
            connection.handle.autocommit = True
        return connection

    @classmethod
    def _rollback_handle(cls, connection) -> None:
        """Roll back what dbt has begun; where nothing was begun that is a warning."""
        with connection.handle.cursor() as cursor:
            cursor.execute("ROLLBACK")
