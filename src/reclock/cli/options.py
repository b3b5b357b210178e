"""The settings that several commands share: one table, which flags, environment and file obey.

A setting is taken from the flag, else from the environment (``RECLOCK_STATE``), else from the file
``reclock.toml`` in the directory the command runs in (or ``--config``), else it is the default::

    state = "reclock-state"
    master = "local[4]"
    conf = ["spark.driver.memory=4g", "spark.ui.enabled=true"]
    store = "s3://bucket/prefix"
    meta = "postgresql://user@host/database"
    port = 6875
    trust_local = true
    file_root = ["/data/in", "/data/out"]

A file with a key that is not a setting, or a value of another kind, is an error: a misspelt setting
would be the default. A setting that may have several values has them in the file as a list; in
the environment paths have ``:`` between them, as in ``PATH``, others blanks.

Tests: tests/cli/test_options.py; docs/command-line.md has the table.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import click

from reclock.cli.log import FORMATS, LEVELS
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG_FILE: Final = "reclock.toml"
HTTP_PORT: Final = 6876
PG_PORT: Final = 6875
HTTP_PLACE: Final = f"127.0.0.1:{HTTP_PORT}"
PG_PLACE: Final = f"127.0.0.1:{PG_PORT}"
_KINDS: Final = {str: "text", int: "a whole number", bool: "true or false"}


class Setting(NamedTuple):
    """A setting and its default; ``kind`` is that of its value in a file.

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
    """What ``looked_at`` hands to ``look`` in addition to the state directory."""

    store: str | None
    meta: str | None


class Where(Elsewhere):
    """What ``place`` hands to a command in addition to the state directory."""

    master: str | None
    conf: tuple[str, ...]
    properties_file: Path | None


class Opened(Elsewhere):
    """What ``opened`` hands to ``reclock.open``."""

    master: str | None
    conf: dict[str, str]


STATE: Final = Setting("state", "reclock-state", "The state directory.")
MASTER: Final = Setting("master", None, "Any Spark master; this machine by default.")
CONF: Final = Setting(
    "conf", None, "A setting of Spark, name=value; may be given more than once.", many=True
)
PROPERTIES_FILE: Final = Setting(
    "properties_file", None, "A file of Spark's settings, as spark-defaults.conf; --conf is before."
)
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
HTTP: Final = Setting(
    "http", None, "Where the console, metrics and the HTTP API listen: HOST:PORT, or off."
)
LISTEN: Final = Setting(
    "listen", None, "Where run serves PostgreSQL's protocol: HOST:PORT, or off."
)
LOG_FORMAT: Final = Setting("log_format", "text", "How to write what happens: text or json.")
LOG_LEVEL: Final = Setting(
    "log_level", "info", "From when on to write it: debug, info, warning or error."
)
INIT: Final = Setting("init", None, "A file of statements to apply first, as run does.")
SERVING: Final = (HOST, PORT, TLS_CERT, TLS_KEY, TRUST_LOCAL, MAX_CONNECTIONS, FILE_ROOT, INIT)
LOGGING: Final = (LOG_FORMAT, LOG_LEVEL)
SETTINGS: Final = (
    STATE,
    MASTER,
    CONF,
    PROPERTIES_FILE,
    STORE,
    META,
    *SERVING,
    HTTP,
    LISTEN,
    *LOGGING,
)


def state() -> Callable[[Any], Any]:
    """Return the option of the state directory."""
    kind = click.Path(file_okay=False, path_type=Path)
    return _option(STATE, type=kind, show_default=True)


def place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a database is, and which Spark it has."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return _with(
        command,
        state(),
        _option(MASTER),
        _option(CONF, multiple=True),
        _option(PROPERTIES_FILE, type=file),
        _option(STORE),
        _option(META),
    )


def opened(where: Where) -> Opened:
    """Return what ``reclock.open`` is told: the settings of Spark of a file, and those given."""
    from reclock.spark.properties import parsed  # noqa: PLC0415 - the other commands start faster

    settings: dict[str, str] = {}
    if (file := where["properties_file"]) is not None:
        try:
            said = parsed(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            message = f"cannot read {file}"
            raise InvalidValue(message, detail=str(error)) from None
        settings = {name: value for name, value in said.items() if name.startswith("spark.")}
    for text in where["conf"]:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            message = f'"{text}" is not a setting of Spark'
            raise InvalidValue(message, hint="write --conf spark.name=value")
        settings[name] = value
    return {
        "master": where["master"], "conf": settings,
        "store": where["store"], "meta": where["meta"],
    }  # fmt: skip


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
        http(),
    )


def console(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the servers of a command that is not about serving."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return _with(
        command,
        http(),
        _option(LISTEN, is_flag=False, flag_value=PG_PLACE, metavar="[HOST:PORT]"),
        _option(TLS_CERT, type=file),
        _option(TLS_KEY, type=file),
        _option(TRUST_LOCAL, is_flag=True),
    )


def http() -> Callable[[Any], Any]:
    """Return the option of where to listen for HTTP; without a value, at the usual place."""
    return _option(HTTP, is_flag=False, flag_value=HTTP_PLACE, metavar="[HOST:PORT]")


def logging(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a command tells what happens."""
    return _with(
        command,
        _option(LOG_FORMAT, show_default=True, type=click.Choice(FORMATS)),
        _option(LOG_LEVEL, show_default=True, type=click.Choice(LEVELS)),
    )


def place_of(text: str, flag: str = "http", usual: int = HTTP_PORT) -> tuple[str, int] | None:
    """Return host and port of ``HOST:PORT``, ``PORT`` or ``HOST``; None for ``off``.

    >>> place_of("0.0.0.0:80"), place_of("80"), place_of("[::1]:80"), place_of("off")
    (('0.0.0.0', 80), ('127.0.0.1', 80), ('::1', 80), None)
    """
    if text == "off":
        return None
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = ("", text) if text.isdigit() else (text, str(usual))
    if not port.isdigit() or int(port) > 65_535:
        message = f'"{text}" is not HOST:PORT'
        raise InvalidValue(message, hint=f"write --{flag} 127.0.0.1:{usual}, or --{flag} off")
    return host.strip("[]") or "127.0.0.1", int(port)


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
