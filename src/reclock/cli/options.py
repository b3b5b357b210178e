"""The settings that several commands share: one table, which flags, environment and file obey.

A setting is taken from the flag, else from the environment (``RECLOCK_STATE``), else from the file
``reclock.toml`` in the directory the command runs in (or ``--config``), else it is the default::

    state = "reclock-state"
    master = "local[4]"
    store = "s3://bucket/prefix"
    meta = "postgresql://user@host/database"
    port = 6875
    trust_local = true
    file_root = ["/data/in", "/data/out"]

A file with a key that is not a setting, or a value of another kind, is an error: a misspelt setting
would be the default. A setting that may have several values has them in the environment with ``:``
between them, as ``PATH``; in the file as a list.

Tests: tests/cli/test_options.py; docs/command-line.md has the table.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import click

from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG_FILE: Final = "reclock.toml"
_KINDS: Final = {str: "text", int: "a whole number", bool: "true or false"}


class Setting(NamedTuple):
    """A setting, and what it is if nobody says; ``kind`` is that of its value in a file.

    With ``many`` it may be given more than once.
    """

    name: str
    default: str | int | None
    meaning: str
    kind: type = str
    many: bool = False

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"RECLOCK_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """Its name as an option."""
        return f"--{self.name.replace('_', '-')}"

    def takes(self, value: object) -> bool:
        """Return whether a value of a file is one of this setting."""
        values = value if self.many and isinstance(value, list) else [value]
        return all(type(each) is self.kind for each in values)


class Elsewhere(TypedDict):
    """What ``looked_at`` hands to ``look`` beside the state directory."""

    store: str | None
    meta: str | None


class Where(Elsewhere):
    """What ``place`` hands to ``reclock.open`` beside the state directory."""

    master: str | None


STATE: Final = Setting("state", "reclock-state", "The state directory.")
MASTER: Final = Setting("master", None, "Any Spark master; this machine by default.")
STORE: Final = Setting(
    "store", None, "Where files are, if not in the state directory: a directory, or s3://…."
)
META: Final = Setting("meta", None, "The PostgreSQL database that has the records: postgresql://….")
HOST: Final = Setting("host", "127.0.0.1", "The address to listen at; 0.0.0.0 is all.")
PORT: Final = Setting("port", 6875, "The port to listen at; 0 is any that is free.", int)
TLS_CERT: Final = Setting("tls_cert", None, "A certificate chain (PEM), to offer TLS.")
TLS_KEY: Final = Setting("tls_key", None, "The certificate's private key (PEM).")
TRUST_LOCAL: Final = Setting(
    "trust_local", None, "Let clients on this machine in without a password.", bool
)
MAX_CONNECTIONS: Final = Setting(
    "max_connections", 100, "How many clients there may be at once.", int
)
FILE_ROOT: Final = Setting(
    "file_root", None, "A directory in which clients may name files of sources and sinks.",
    many=True,
)  # fmt: skip
INIT: Final = Setting("init", None, "A file of statements to apply first, as run does.")
SERVING: Final = (HOST, PORT, TLS_CERT, TLS_KEY, TRUST_LOCAL, MAX_CONNECTIONS, FILE_ROOT, INIT)
SETTINGS: Final = (STATE, MASTER, STORE, META, *SERVING)


def state() -> Callable[[Any], Any]:
    """Return the option of the state directory."""
    kind = click.Path(file_okay=False, path_type=Path)
    return _option(STATE, type=kind, show_default=True)


def place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a database is, and which Spark it has."""
    return _with(command, state(), _option(MASTER), _option(STORE), _option(META))


def looked_at(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a database is."""
    return _with(command, state(), _option(STORE), _option(META))


def serving(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a server listens, and to whom."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    directory = click.Path(exists=True, file_okay=False, path_type=Path)
    return _with(
        command,
        _option(HOST, show_default=True),
        _option(PORT, show_default=True, type=click.IntRange(0, 65_535)),
        _option(TLS_CERT, type=file),
        _option(TLS_KEY, type=file),
        _option(TRUST_LOCAL, is_flag=True),
        _option(MAX_CONNECTIONS, show_default=True, type=click.IntRange(1, 10_000)),
        _option(FILE_ROOT, type=directory, multiple=True),
        _option(INIT, type=file),
    )


def _with(command: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[..., Any]:
    decorated = command
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _option(setting: Setting, **more: Any) -> Callable[[Any], Any]:
    if setting.default is not None:
        more["default"] = setting.default
    return click.option(setting.flag, envvar=setting.variable, help=setting.meaning, **more)


def defaults(path: Path | None) -> dict[str, Any]:
    """Return the settings of a file; of ``reclock.toml``, if there is one, for None."""
    file = Path(CONFIG_FILE) if path is None else path
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path is None:
            return {}
        message = f"there is no file {file}"
        raise InvalidValue(message, hint="name a TOML file with --config") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"cannot read {file}"
        raise InvalidValue(message, detail=str(error)) from None
    known = {setting.name: setting for setting in SETTINGS}
    for name, value in found.items():
        if name not in known:
            message = f'"{name}" of {file} is not a setting'
            raise InvalidValue(message, hint=f"settings are {', '.join(known)}")
        if not known[name].takes(value):
            message = f'"{name}" of {file} cannot be {value!r:.60}'
            raise InvalidValue(message, hint=f"its value is {_KINDS[known[name].kind]}")
        if known[name].many and not isinstance(value, list):
            found[name] = [value]
    return found
