"""The examples run, and say what they claim to."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "bank", "cdc", "dbt", "exactly_once", "nexmark", "notebook", "postgres", "replay", "sinks",
    "topics", "views", "windows",
}  # fmt: skip
pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def found(monkeypatch, spark):
    monkeypatch.syspath_prepend(str(ROOT))


def run(name, *arguments):
    return import_module(f"examples.{name}.__main__").run(*arguments)


def test_no_example_is_left_out():
    there = {path.parent.name for path in (ROOT / "examples").glob("*/*") if path.is_file()}
    assert there == EXAMPLES


def test_bank(tmp_path):
    assert run("bank", tmp_path / "state") > 5


def test_nexmark(tmp_path):
    assert run("nexmark", tmp_path / "state", 1.0) > 0


def test_windows(tmp_path):
    seen = run("windows", tmp_path / "state")
    assert seen["12:00 + 0 min"] == [("buy", 1)]
    assert seen["12:00 + 1 min"] == [("buy", 2), ("click", 2)]
    assert [row[1] for row in seen["12:00 + 3 min"]] == [2, 4, 3, 3]
    assert [row[1] for row in seen["12:00 + 8 min"]] == [3, 3]
    assert seen["12:00 + 65 min"] == []


def test_the_notebook():
    notebook = json.loads((ROOT / "examples/notebook/reclock.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["before"].rows == names["sales"].rows


@pytest.mark.parametrize("name", ["replay", "views"])
def test_stories(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [name])
    assert import_module(f"examples.{name}.__main__").main() == 0
    assert len(capsys.readouterr().out.splitlines()) > 10


@pytest.mark.kafka
def test_topics(tmp_path, kafka, capsys):
    run("topics", tmp_path, kafka.address)
    said = capsys.readouterr().out
    assert "3000 orders, each once: [(3000, 3000)]" in said
    assert said.count(": 0 rows differ") > 3


@pytest.mark.slow(seconds=60)
@pytest.mark.postgres
def test_postgres(tmp_path, capsys):
    assert run("postgres", tmp_path / "state") > 2
    said = capsys.readouterr().out
    assert "killed -9" in said
    assert said.endswith("all transfers are there, once\n")


@pytest.mark.slow(seconds=40)
@pytest.mark.kafka
def test_sinks(tmp_path, capsys):
    run("sinks", tmp_path)  # it compares by itself, and says so
    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.kafka
def test_cdc(tmp_path, kafka):
    assert run("cdc", tmp_path, kafka.address) == 4


@pytest.mark.kafka
def test_exactly_once(tmp_path, kafka):
    seen = run("exactly_once", tmp_path, kafka.address)
    assert sorted(seen) == [n for n in range(2_000) if n % 100 >= 50]
    assert set(seen.values()) == {1}
