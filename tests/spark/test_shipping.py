"""What executors import is what the driver has, and nothing that is installed there."""

from __future__ import annotations

import subprocess
import sys
import zipfile

from reclock.spark.shipping import packed


def test_the_package_is_imported_from_the_archive(tmp_path):
    archive = packed(tmp_path)
    assert packed(tmp_path) == archive
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "import reclock.dataflow.job.part as part\n"
        "print(part.__file__, part.__cached__ or part.__spec__.cached)"
    )
    made = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert str(archive) in made.stdout


def test_modules_are_shipped_compiled_and_as_text(tmp_path):
    names = set(zipfile.ZipFile(packed(tmp_path)).namelist())
    assert {"reclock/__init__.py", "reclock/__init__.pyc", "reclock/py.typed"} <= names
    assert not any("__pycache__" in name for name in names)
