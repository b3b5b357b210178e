"""Our package on the executors: the same files that the driver runs, shipped by Spark itself.

A cluster has the libraries that we use, and maybe another version of us, or none. Tasks run
our code on what our code wrote, so it must be the very same: the driver packs the package that it
has imported into an archive, compiled for its own Python, and Spark takes it to every executor
(``addPyFile``), before whatever is installed there.

Cost: one archive of some two megabytes per process that starts a Spark on other machines.

Tests: tests/spark/test_shipping.py.
"""

from __future__ import annotations

import py_compile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkContext

NAME: Final = "reclock-shipped.zip"


def ship(context: SparkContext, scratch: Path) -> None:
    """Have every executor of a context import the package that this process has."""
    context.addPyFile(str(packed(scratch)))


def packed(scratch: Path) -> Path:
    """Return an archive with the package, sources and compiled, made once per process."""
    archive = scratch / NAME
    if archive.exists():
        return archive
    home = Path(__file__).parents[1]
    compiled = scratch / "compiled.pyc"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(home.rglob("*")):
            if path.is_dir() or "__pycache__" in path.parts:
                continue
            name = str(Path("reclock") / path.relative_to(home))
            made.write(path, name)
            if path.suffix == ".py":
                py_compile.compile(
                    str(path), str(compiled), name, doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )  # fmt: skip
                made.write(compiled, f"{name}c")
    compiled.unlink(missing_ok=True)
    return archive
