"""Dependencies point down, the pure core is pure, and only the clock reads the clock."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from sysconfig import get_path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "reclock"

INPUT_OUTPUT = ("pyspark", "pyarrow", "confluent_kafka", "sqlalchemy", "sqlite3", "psycopg")

IMPORT_ALL = """
import importlib, sys
blocked, modules = (argument.split(",") for argument in sys.argv[1:])
sys.modules.update(dict.fromkeys(blocked))
for module in modules:
    importlib.import_module(module)
"""

WALL_CLOCK = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "clock_gettime"},
    "datetime.datetime": {"now", "utcnow", "today"},
    "datetime.date": {"today"},
}
CYCLES = [{"reclock.sql.syntax.expression", "reclock.sql.syntax.query"}]
"""The modules that import each other, imports of types and in functions counted.

An expression contains queries, a query expressions. The list may only become shorter: a module that
needs its caller's type takes a protocol.
"""

MAY_TOUCH_TIME = {"clock.py", "failpoints.py"}


def modules_of(package: str) -> list[str]:
    root = PACKAGE / package
    return sorted(
        ".".join(["reclock", *path.relative_to(PACKAGE).with_suffix("").parts])
        for path in root.rglob("*.py")
        if path.name != "__init__.py"
    )


def imported(modules: list[str], blocked: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", IMPORT_ALL, ",".join(blocked), ",".join(modules)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def names_touched(source: str) -> set[str]:
    """Return what a module uses of the standard library's clocks, by full name."""
    tree = ast.parse(source)
    meaning: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                meaning[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def full_name(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return meaning.get(node.id, "")
        if isinstance(node, ast.Attribute) and (owner := full_name(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    clocks = {f"{owner}.{name}" for owner, names in WALL_CLOCK.items() for name in names}
    used = {full_name(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    return clocks & (used | set(meaning.values()))


@pytest.mark.parametrize("package", ["time", "change", "remap"])
def test_the_pure_core_imports_with_all_input_and_output_blocked(package: str) -> None:
    modules = modules_of(package)
    assert modules
    result = imported(modules, (*INPUT_OUTPUT, "sqlglot"))
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not (PACKAGE / "sql").is_dir(), reason="the SQL layer is not there yet")
def test_sql_imports_with_all_input_and_output_blocked() -> None:
    result = imported(modules_of("sql"), INPUT_OUTPUT)
    assert result.returncode == 0, result.stderr


def test_a_blocked_module_cannot_be_imported() -> None:
    result = imported(["reclock.durable.sqlite"], ("sqlalchemy",))
    assert "sqlalchemy" in result.stderr
    assert result.returncode != 0


def test_the_import_contracts_are_kept() -> None:
    command = [str(Path(get_path("scripts")) / "lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def cycles() -> list[set[str]]:
    """Return the sets of modules that import each other, in circles, the largest first."""
    graph = grimp.build_graph("reclock", exclude_type_checking_imports=False, cache_dir=None)
    found: list[set[str]] = []
    left = set(graph.modules)
    while left:
        start = left.pop()
        circle = {start} | graph.find_upstream_modules(start) & graph.find_downstream_modules(start)
        left -= circle
        if len(circle) > 1:
            found.append(circle)
    return sorted(found, key=len, reverse=True)


def test_no_modules_import_each_other() -> None:
    assert cycles() == CYCLES


def test_every_module_has_a_layer() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract
        for contract in config["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    named = {name.strip(" ()") for layer in contract["layers"] for name in layer.split("|")}
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert there - named <= {"__init__", "__pycache__"}, "add them to the layers in pyproject.toml"


def test_only_the_clock_reads_the_wall_clock() -> None:
    touched = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := names_touched(path.read_text(encoding="utf-8")))
    }
    assert touched["clock.py"] == {"time.time_ns"}
    assert touched.keys() <= MAY_TOUCH_TIME, f"ask for a reclock.clock.Clock instead: {touched}"


@pytest.mark.parametrize(
    ("source", "touched"),
    [
        ("import time\ntime.time()", {"time.time"}),
        ("import time as t\nnow = t.time_ns", {"time.time_ns"}),
        ("from time import time", {"time.time"}),
        ("import datetime\ndatetime.datetime.now(datetime.UTC)", {"datetime.datetime.now"}),
        ("from datetime import datetime as d\nd.utcnow()", {"datetime.datetime.utcnow"}),
        ("from datetime import date\ndate.today()", {"datetime.date.today"}),
        ("import time\ntime.monotonic(); time.sleep(1)", set()),
        ("from reclock.time import timestamp\ntimestamp.time()", set()),
        ("def time(): ...\ntime()", set()),
    ],
)
def test_the_scan_for_clocks_sees_them(source: str, touched: set[str]) -> None:
    assert names_touched(source) == touched
