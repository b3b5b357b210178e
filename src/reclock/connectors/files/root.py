"""Files that must stay under a directory, whatever links lead where.

Definition. A path is *within* a root if what it leads to, when all links are followed, is the root
or lies under it. It is asked again whenever a file is opened: links can be made later.

Tests: tests/connectors/files/test_root.py.
"""

from __future__ import annotations

import os

from reclock.errors import SourceUnavailable


def is_within(path: str, root: str) -> bool:
    """Return whether a path leads to something in ``root``, which has no links itself.

    >>> is_within("/data/a.csv", "/data"), is_within("/data/../etc", "/data")
    (True, False)
    """
    return os.path.commonpath([os.path.realpath(path), root]) == root


def real_path(path: str, root: str | None) -> str:
    """Return what to open for a path: itself, or without links if it must stay in ``root``."""
    if root is None:
        return path
    if not is_within(path, root):
        message = f'"{path}" leads out of the directory that it must stay in'
        detail = f"a link leads elsewhere than into {root}"
        hint = "put a file in the place of the link"
        raise SourceUnavailable(message, code="42501", detail=detail, hint=hint)
    return os.path.realpath(path)


def no_link(path: str, flags: int) -> int:
    """Open a file whose path has no links (an ``opener``); one that was made since is refused."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
