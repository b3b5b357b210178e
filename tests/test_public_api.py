"""What others may rely on: names, modules, errors, types and the version."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.version import Version

import reclock
from reclock import ManualClock
from reclock.engine.update import Update
from reclock.errors import Error
from reclock.failpoints import FailpointRaised
from reclock.rows.result import Result
from reclock.session.database import Database
from reclock.session.session import Session
from reclock.subscribe.subscription import Subscription

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "reclock"

MODULES = sorted(
    ".".join(["reclock", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
        ".__init__"
    )
    for path in PACKAGE.rglob("*.py")
)


def subclasses(error: type[Error]) -> list[type[Error]]:
    return [error, *(below for child in error.__subclasses__() for below in subclasses(child))]


TREE = [error for error in subclasses(Error) if error.__module__ == Error.__module__]
ERRORS = [*TREE, FailpointRaised]


def documented_names() -> set[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split("\n## What is public\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("|")]
    return set(re.findall(r"`reclock\.(\w+)`", " ".join(rows)))


def test_the_public_names_are_the_documented_ones() -> None:
    assert len(reclock.__all__) == len(set(reclock.__all__))
    assert set(reclock.__all__) == documented_names()
    assert all(hasattr(reclock, name) for name in reclock.__all__)


@pytest.mark.parametrize("cls", [Database, Subscription, Update, Result, ManualClock])
def test_every_method_is_documented(cls: type) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name in (name for name in dir(cls) if not name.startswith("_")):
        assert re.search(rf"`(?:\w+, )*{name}\b", text), (
            f"docs/python.md lacks {cls.__name__}.{name}"
        )


def test_a_session_has_what_is_said_of_it() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    said = re.search(r"A session, `db\.session\(\)`, has (.*?), like a database", text)
    assert said
    names = re.findall(r"`(\w+)`", said[1])
    assert {"execute", "close"} < set(names)
    for name in names:
        ours, theirs = (inspect.signature(getattr(cls, name)) for cls in (Session, Database))
        assert ours == theirs, name


def test_every_argument_of_open_is_documented() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    signature = re.search(r"`reclock\.open\((.*?)\)`", text)
    assert signature
    assert re.findall(
        r"\w+(?==|,|$)", signature[1].replace("=None", "=").replace("=True", "=")
    ) == [*inspect.signature(reclock.open).parameters]
    assert all(f"`reclock.{name}" in text for name in reclock.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_imports(module: str) -> None:
    importlib.import_module(module)


def test_only_internal_errors_live_outside_of_the_documented_tree() -> None:
    for module in MODULES:
        importlib.import_module(module)
    outside = {e for e in subclasses(Error) if e.__module__.startswith("reclock.")} - set(TREE)
    assert FailpointRaised in outside
    assert {error.sqlstate for error in outside} == {Error.sqlstate}


@pytest.mark.parametrize("error", ERRORS)
def test_errors_survive_pickling_with_all_attributes(error: type[Error]) -> None:
    parameters = inspect.signature(error).parameters.values()
    options = {p.name: f"some {p.name}" for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert {"detail", "hint", "code"} <= options.keys()
    original = error("a message", **options)
    original.add_note("a note")
    copy = pickle.loads(pickle.dumps(original))
    assert type(copy) is error
    assert vars(copy) == vars(original)
    assert copy.args == original.args
    assert str(copy) == str(original) == "a message\ndetail: some detail\nhint: some hint"


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_has_a_sqlstate_and_says_what_it_is(error: type[Error]) -> None:
    assert re.fullmatch(r"[0-9A-Z]{5}", error.sqlstate)
    assert error("a message").code == error.sqlstate
    assert error.__doc__
    assert error.__doc__ != Error.__doc__ or error is Error


def test_types_are_published() -> None:
    assert files("reclock").joinpath("py.typed").is_file()


def test_the_version_is_a_version() -> None:
    assert str(Version(reclock.__version__)) == reclock.__version__
