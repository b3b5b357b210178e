"""Every refusal says what to do instead: read from the source, so that none is forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import reclock
from reclock.sql.parse import node

ROOT = Path(reclock.__file__).parent
PACKAGES = (
    "sql",
    "catalog",
    "engine",
    "ingest",
    "export",
    "subscribe",
    "system",
    "session",
    "server",
)
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
REFUSALS = {"NotSupported", "InvalidSyntax"}


def calls(names):
    for path in FILES:
        for at in ast.walk(ast.parse(path.read_text())):
            if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id in names:
                yield f"{path.relative_to(ROOT)}:{at.lineno}", at


SITES = dict(calls(REFUSALS))


def test_there_are_refusals_to_look_at():
    assert len(SITES) > 60


@pytest.mark.parametrize("site", SITES)
def test_a_refusal_has_a_hint(site):
    hints = [word.value for word in SITES[site].keywords if word.arg == "hint"]
    assert hints, "no hint"
    assert not any(isinstance(h, ast.Constant) and not h.value for h in hints), "an empty hint"


def assigned(path):
    """Yield the texts that a module gives to ``msg``, which ``unsupported`` takes."""
    for at in ast.walk(ast.parse(path.read_text())):
        if isinstance(at, ast.Assign) and ast.unparse(at.targets[0]) == "msg":
            yield from [at.value.value] if isinstance(at.value, ast.Constant) else []


@pytest.mark.parametrize("module", ["expression", "query", "write"])
def test_a_construct_that_has_a_name_has_a_hint_of_its_own(module):
    path = ROOT / "sql" / "parse" / f"{module}.py"
    general = node.unsupported("something that nobody wrote").hint
    without = [name for name in assigned(path) if node.unsupported(name).hint == general]
    assert set(without) <= {
        "WITH without a name",
        "a schema-qualified function",
        "an alias in INSERT",
    }
