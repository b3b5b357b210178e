"""The directories in which clients of a server may name the files of sources and sinks.

A user who opens a database in their own process may name any file: they can read it anyway. A
client of a server does not see the server's files, so it names only files in the directories that
the server was started with (``--file-root``); with none it names no file at all.

The target of a path counts, not its spelling: ``..`` and links are followed before the check, and
the source or sink keeps the resolved path and the root, and checks again whenever it opens a file.
A relative path is one in the first root. Addresses (``file://``, ``s3://``) are not paths. Refusals
say nothing about what there is outside.

Client libraries have options that name files too (``kafka.ssl.ca.location``): these must be in a
root, by an absolute path. Some name a program or a library to load (``kafka.plugin.library.paths``,
``kafka.sasl.kerberos.kinit.cmd``): no client gives these.

Tests: tests/session/test_file_roots.py.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.connectors.files.root import is_within
from reclock.errors import Forbidden, InvalidValue
from reclock.sql.statement.source import FileConnection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from reclock.sql.statement import CreateSink, CreateSource

CLIENT_PREFIXES: Final = ("kafka.", "registry.")
_RUNS: Final = re.compile(r"plugin|librar|engine|provider|\.cmd$|command")
_NAMES_FILE: Final = re.compile(r"location$|paths?$|file$|keytab$|stores?$|dir$|directory$")
"""What options of client libraries are called that name files."""

S = TypeVar("S", "CreateSource", "CreateSink")


@dataclass(frozen=True, slots=True)
class FileRoots:
    """Directories, without links; none allows nothing."""

    roots: tuple[str, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str | os.PathLike[str]], *, private: Iterable[Path] = ()) -> Self:
        """Return the roots at some paths, none of which may have anything ``private`` in it."""
        roots = tuple(os.path.realpath(path) for path in paths)
        for root in roots:
            if not os.path.isdir(root):
                message = f'"{root}" is not a directory'
                raise InvalidValue(message, hint="name a directory with --file-root")
            for path in map(os.path.realpath, private):
                if is_within(path, root) or is_within(root, path):
                    message = f'files of clients cannot be in "{root}": the database is in there'
                    detail = f"it is in {path}"
                    hint = "name another directory with --file-root, or move the database"
                    raise InvalidValue(message, detail=detail, hint=hint)
        return cls(roots)

    def admitted(self, statement: S) -> tuple[S, str | None]:
        """Return a statement that names a file by what it leads to, and the root that this is in.

        A statement that names no file is returned as it is, with None.
        """
        for name, value in statement.options:
            self._check_option(name, value)
        connection = statement.connection
        if not isinstance(connection, FileConnection):
            return statement, None
        path, root = self._found(connection.path)
        return replace(statement, connection=replace(connection, path=path)), root

    def _check_option(self, name: str, value: str) -> None:
        if not name.startswith(CLIENT_PREFIXES):
            return
        if _RUNS.search(name):
            message = f'permission denied: option "{name}" is not for clients of a server'
            detail = "it names something that the server would run"
            hint = "who opens the database himself (reclock sql) can create it with that"
            raise Forbidden(message, detail=detail, hint=hint)
        if _NAMES_FILE.search(name):
            self._found(value)
            if not os.path.isabs(value):
                message = f'option "{name}" needs an absolute path'
                raise InvalidValue(message, hint=f"name a file in {' or '.join(self.roots)}")

    def _found(self, path: str) -> tuple[str, str]:
        if not self.roots:
            message = "permission denied: files are not for clients of this server"
            hint = "start it with --file-root DIRECTORY to allow files in there"
            raise Forbidden(message, hint=hint)
        if "://" in path or "\0" in path:
            message = f'"{path}" is not the path of a file'
            raise InvalidValue(message, hint="write a path, without file:// or the like")
        real = os.path.realpath(os.path.join(self.roots[0], path))
        for root in self.roots:
            if is_within(real, root):
                return real, root
        message = f'permission denied: "{path}" is not where clients may have files'
        raise Forbidden(message, hint=f"name a file in {' or '.join(self.roots)}")
