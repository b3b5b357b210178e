"""Which modules run while something happens, in the order in which they are first entered."""

from __future__ import annotations

import ast
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import reclock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

PACKAGE = Path(reclock.__file__).parent
_ROOT = str(PACKAGE) + "/"
_OURS = str(PACKAGE / "testing") + "/"


def _module(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    if not name.startswith(_ROOT) or name.startswith(_OURS):
        return None
    return name[len(_ROOT) :]


def _package(module: str) -> str:
    return module.split("/", 1)[0]


@dataclass
class Walk:
    """Modules as paths below the package, functions, and calls from one package into another."""

    modules: list[str] = field(default_factory=list)
    functions: set[tuple[str, int]] = field(default_factory=set)
    borders: set[tuple[str, str]] = field(default_factory=set)
    is_on: bool = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; a profile function of ``sys`` and ``threading``."""
        if event != "call" or not self.is_on:
            return
        module = _module(frame)
        if module is None:
            return
        if module not in self.modules:
            self.modules.append(module)
        self.functions.add((module, frame.f_code.co_firstlineno))
        caller = frame.f_back
        while caller is not None and (before := _module(caller)) is None:
            caller = caller.f_back
        if caller is not None and before is not None and _package(before) != _package(module):
            self.borders.add((before, module))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread, and those that begin in the block."""
        threading.setprofile(self.see)
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what runs in the block, in the threads that are watched."""
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def table(self) -> str:
        """Return the modules with the first line of what each says of itself."""
        lines = ["| | module | what it is |", "|---|---|---|"]
        for n, module in enumerate(self.modules, 1):
            tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
            first = (ast.get_docstring(tree) or "").partition("\n")[0].replace("|", "\\|")
            said = first.replace("``", "`")
            lines.append(f"| {n} | [{module}](../src/reclock/{module}) | {said} |")
        return "\n".join(lines)
