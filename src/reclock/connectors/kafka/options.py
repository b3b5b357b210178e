"""Connection options of a cluster: brokers, and the ``kafka.*`` options of the client.

Options go to librdkafka as they are, without the prefix: ``kafka.security.protocol``,
``kafka.sasl.mechanism``, ``kafka.ssl.ca.location`` … Those that hold secrets are wrapped
when they come in, so no repr, error or log shows them. Options on which correctness rests
belong to reclock and are refused.

Tests: tests/connectors/kafka/test_options.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from reclock.errors import InvalidValue
from reclock.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "kafka."

ISOLATION_LEVELS: Final = ("read_committed", "read_uncommitted")

_SECRET: Final = re.compile(
    r"password|secret|token|\.pem$|assertion|oauthbearer\.config|user\.info"
)

_OURS: Final = {
    "bootstrap.servers": "it is what follows BROKER",
    "metadata.broker.list": "it is what follows BROKER",
    "isolation.level": "write isolation_level, without the prefix",
    "group.id": "write group_id_prefix",
    "enable.auto.commit": "positions are kept by the source's bindings",
    "enable.auto.offset.store": "positions are kept by the source's bindings",
    "auto.offset.reset": "lost offsets are an error, never skipped",
    "enable.partition.eof": "reclock needs to see the ends of partitions",
    "check.crcs": "reclock decides",
}


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's address and how to be let in.

    >>> Connection.of("localhost:9092", {"kafka.sasl.password": "hunter2"}).options
    (('sasl.password', Secret(***)),)
    """

    brokers: str
    options: tuple[tuple[str, str | Secret], ...] = ()
    isolation: str = "read_committed"
    group_prefix: str = ""

    def __post_init__(self) -> None:
        """Refuse an isolation level that Kafka does not have."""
        if self.isolation not in ISOLATION_LEVELS:
            message = f'invalid isolation level "{self.isolation}"'
            raise InvalidValue(message, hint=f"write {' or '.join(ISOLATION_LEVELS)}")

    @classmethod
    def of(
        cls,
        brokers: str,
        options: Mapping[str, str],
        isolation: str = "read_committed",
        group_prefix: str = "",
    ) -> Self:
        """Return the connection that the ``kafka.*`` ones of ``options`` describe."""
        given: list[tuple[str, str | Secret]] = []
        for name, value in sorted(options.items()):
            if not name.startswith(PREFIX):
                continue
            bare = name.removeprefix(PREFIX)
            if bare in _OURS:
                message = f'option "{name}" cannot be set'
                raise InvalidValue(message, hint=_OURS[bare])
            given.append((bare, Secret(value) if is_secret(bare) else value))
        return cls(brokers, tuple(given), isolation, group_prefix)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What must not be seen in texts that the client library writes."""
        return tuple(value for _, value in self.options if isinstance(value, Secret))

    def config(self) -> dict[str, str]:
        """Return the client library's configuration, secrets revealed: for it alone."""
        given = {n: v.reveal() if isinstance(v, Secret) else v for n, v in self.options}
        return {"client.id": "reclock", **given, "bootstrap.servers": self.brokers}


def is_secret(option: str) -> bool:
    """Return whether the value of a client option must not be shown.

    >>> is_secret("sasl.password"), is_secret("ssl.key.pem"), is_secret("sasl.username")
    (True, True, False)
    """
    return _SECRET.search(option) is not None
