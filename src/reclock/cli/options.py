"""The settings that several commands share: one table, which flags, environment and file obey.

A setting is taken from the flag, else from the environment (``RECLOCK_STATE``), else from the file
``reclock.toml`` in the directory the command runs in (or ``--config``), else it is the default::

    state = "reclock-state"
    master = "local[4]"
    store = "s3://bucket/prefix"
    meta = "postgresql://user@host/database"

A file with a key that is not a setting is an error: a misspelt setting would be the default.

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


class Setting(NamedTuple):
    """A setting, and what it is if nobody says."""

    name: str
    default: str | None
    meaning: str

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"RECLOCK_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """Its name as an option."""
        return f"--{self.name}"


class Where(TypedDict):
    """What ``place`` hands to ``reclock.open`` beside the state directory."""

    master: str | None
    store: str | None
    meta: str | None


STATE: Final = Setting("state", "reclock-state", "The state directory.")
MASTER: Final = Setting("master", None, "Any Spark master; this machine by default.")
STORE: Final = Setting(
    "store", None, "Where files are, if not in the state directory: a directory, or s3://…."
)
META: Final = Setting("meta", None, "The PostgreSQL database that has the records: postgresql://….")
SETTINGS: Final = (STATE, MASTER, STORE, META)


def state(*, must_exist: bool = False) -> Callable[[Any], Any]:
    """Return the option of the state directory."""
    kind = click.Path(exists=must_exist, file_okay=False, path_type=Path)
    return _option(STATE, type=kind, show_default=True)


def place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a database is, and which Spark it has."""
    decorated = command
    for option in (_option(META), _option(STORE), _option(MASTER), state()):
        decorated = option(decorated)
    return decorated


def _option(setting: Setting, **more: Any) -> Callable[[Any], Any]:
    return click.option(
        setting.flag, envvar=setting.variable, default=setting.default, help=setting.meaning, **more
    )


def defaults(path: Path | None) -> dict[str, str]:
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
    known = [setting.name for setting in SETTINGS]
    for name, value in found.items():
        if name not in known or not isinstance(value, str):
            message = f'"{name}" of {file} is not a setting'
            hint = f"settings are {', '.join(known)}; their values are text"
            raise InvalidValue(message, hint=hint)
    return found
