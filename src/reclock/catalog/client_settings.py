"""Settings that clients of PostgreSQL set and ask for, whatever they talk to.

Drivers set their encoding or their date style before the first query, and ask for the version.
What reclock does not do otherwise anyway is accepted here, and only that: text is UTF-8, dates
are ISO. ``default_transaction_isolation`` is another name of
``transaction_isolation``, a setting of ours. They are settings of a session; the system has none of
them, so they are neither in ``SHOW ALL`` nor in ``reclock.settings``.

Tests: tests/catalog/test_client_settings.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.errors import InvalidValue
from reclock.sql.zone import DEFAULT, named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SERVER_VERSION: Final = "15.0 (reclock)"
"""The version of PostgreSQL whose dialect and catalog clients may expect."""


class ClientSetting(NamedTuple):
    """A setting; ``check`` returns a value as it is shown, or says what is wrong with it.

    ``reported`` is the name under which clients are told of its value, if they are.
    """

    default: str
    check: Callable[[str], str]
    reported: str | None = None


def any_text(text: str) -> str:
    """Return any value as it is."""
    return text


def _only(shown: str, *names: str) -> Callable[[str], str]:
    """Return a check that takes one value alone, by any of its names."""

    def check(text: str) -> str:
        if text.lower().strip() not in {shown.lower(), *names}:
            message = f'only "{shown}" is supported'
            raise InvalidValue(message, hint=f"leave it out: it is {shown}")
        return shown

    return check


def _date_style(text: str) -> str:
    parts = [part.strip().lower() for part in text.replace(",", " ").split()]
    if not {"iso", *_ORDERS}.issuperset(parts):
        message = 'only "ISO" is supported'
        raise InvalidValue(message, hint="leave it out: dates are ISO")
    order = [_ORDERS[part] for part in parts if part in _ORDERS]
    return f"ISO, {order[-1] if order else 'MDY'}"


_ORDERS: Final = {
    "mdy": "MDY", "us": "MDY", "noneuro": "MDY", "dmy": "DMY", "european": "DMY", "euro": "DMY",
    "ymd": "YMD",
}  # fmt: skip
"""What the order is of a date that is not ISO: of no effect here, but it is shown."""


def _on_off(text: str) -> str:
    """Return on or off."""
    name = text.lower().strip()
    if name not in {"on", "off", "true", "false"}:
        message = f'"{text}" is neither on nor off'
        raise InvalidValue(message, hint="write on or off")
    return "on" if name in {"on", "true"} else "off"


def _number(text: str) -> str:
    try:
        return str(int(text))
    except ValueError:
        message = f'"{text}" is not a whole number'
        raise InvalidValue(message, hint="write a whole number") from None


def _search_path(text: str) -> str:
    names = [name.strip().strip("\"'") for name in text.replace(",", " ").split()]
    if not {"$user", "public", "pg_catalog", "reclock"}.issuperset(names):
        message = "there is one schema for objects, public"
        raise InvalidValue(message, hint="leave it out, or set it to public")
    return ", ".join(names)


CLIENT_SETTINGS: Final[Mapping[str, ClientSetting]] = {
    "application_name": ClientSetting("", any_text, "application_name"),
    "bytea_output": ClientSetting("hex", _only("hex")),
    "client_encoding": ClientSetting("UTF8", _only("UTF8", "utf-8", "unicode"), "client_encoding"),
    "client_min_messages": ClientSetting("notice", any_text),
    "datestyle": ClientSetting("ISO, MDY", _date_style, "DateStyle"),
    "default_transaction_isolation": ClientSetting("strict serializable", any_text),
    "default_transaction_read_only": ClientSetting("off", _on_off),
    "extra_float_digits": ClientSetting("1", _number),
    "integer_datetimes": ClientSetting("on", _only("on"), "integer_datetimes"),
    "intervalstyle": ClientSetting("postgres", _only("postgres"), "IntervalStyle"),
    "jit": ClientSetting("off", _only("off", "false")),
    "max_identifier_length": ClientSetting("63", _only("63")),
    "password_encryption": ClientSetting("scram-sha-256", _only("scram-sha-256")),
    "search_path": ClientSetting("public", _search_path),
    "server_encoding": ClientSetting("UTF8", _only("UTF8"), "server_encoding"),
    "server_version": ClientSetting(SERVER_VERSION, _only(SERVER_VERSION), "server_version"),
    "server_version_num": ClientSetting("150000", _only("150000")),
    "standard_conforming_strings": ClientSetting(
        "on", _only("on", "true", "1"), "standard_conforming_strings"
    ),
    "transaction_read_only": ClientSetting("off", _on_off),
    "timezone": ClientSetting(DEFAULT, named, "TimeZone"),
}
