"""The reference of SQL, in docs/sql, lacks nothing that is in the code.

Statements and their clauses: a block in docs/sql shows each class of ``reclock.sql.statement``, and
each of its fields with something else than its default; every word that the parsers know is in a
syntax block. Options, functions, error codes and statements that are refused: a table has a row for
each. Whoever adds one is told which page lacks it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules
from types import UnionType
from typing import TYPE_CHECKING

import pytest

from documents import parts, statements
from reclock.errors import Error
from reclock.sql import statement as statement_classes
from reclock.sql.parse import connectors, create, parse_statement, read, sqlcursor
from reclock.sql.parse.missing import _MISSING
from reclock.sql.plan.functions import (
    _SUBJECTS,
    AGGREGATE_SYNONYMS,
    AGGREGATES,
    FORBIDDEN,
    FUNCTIONS,
    SYNONYMS,
    WINDOWS,
)
from reclock.sql.plan.functions.datetime import EXTRACT_FIELDS, TRUNC_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sql.plan.functions.aggregate import Aggregate
    from reclock.sql.plan.functions.overload import Overload

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "sql"
PARSERS = ROOT / "src" / "reclock" / "sql" / "parse"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md"))}
FUNCTIONS_PAGE = "docs/sql/functions.md"
INTERNAL = {"single_row", "subscript", "any_row"}
"""Functions that plans are made of, and nobody would write."""
WORDS = {"not", "like", "ilike"}
"""Operators that are words."""

OPTIONS = {
    "create-source.md": {**connectors._SOURCE, **connectors._GENERATOR},
    "create-sink.md": connectors._SINK,
    "create-table.md": create._TABLE,
    "create-view.md": {**create._VIEW, **create._INDEX},
    "subscribe.md": {**read._SUBSCRIBE, **sqlcursor.FETCH},
}
SQLSTATE = re.compile(r"(?:0[0-9A]|2[0-9B]|3[BF]|4[0-9]|5[0-9]|XX)[0-9A-Z]{3}")


def page_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def cells(text: str, heading: str) -> list[list[str]]:
    """Return the rows of all tables whose heading begins so."""
    lines = iter(text.splitlines())
    rows = []
    for line in lines:
        if line.startswith(heading):
            next(lines)
            for row in lines:
                if not row.startswith("|"):
                    break
                rows.append([cell.strip() for cell in row.strip("|").split(" | ")])
    return rows


# statements and their clauses


def inside(value: object) -> Iterator[object]:
    """Yield the parts of a statement, itself too, that are classes of statements."""
    if isinstance(value, tuple):
        for item in value:
            yield from inside(item)
    elif is_dataclass(value) and type(value).__module__.startswith(statement_classes.__name__):
        yield value
        for field in fields(value):
            yield from inside(getattr(value, field.name))


def shown() -> dict[type, set[str]]:
    """Return which classes the blocks of the reference have, and which fields are set there."""
    found: dict[type, set[str]] = defaultdict(set)
    for text in PAGES.values():
        for block in parts(text):
            for given in statements(block) if block.kind == "sql" else ():
                try:
                    parsed = parse_statement(given.text)
                except Error:
                    continue
                for part in inside(parsed):
                    found[type(part)] |= {
                        field.name
                        for field in fields(part)  # type: ignore[arg-type]
                        if getattr(part, field.name) != default_of(field)
                    }
    return found


def default_of(field: object) -> object:
    default, factory = field.default, field.default_factory  # type: ignore[attr-defined]
    return factory() if factory is not MISSING else default


def classes() -> list[type]:
    """Return the classes of statements, and of their parts: connections, formats, envelopes."""
    names = [module.name for module in iter_modules(statement_classes.__path__)]
    modules = [import_module(f"{statement_classes.__name__}.{name}") for name in names]
    modules.append(statement_classes)
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value)
        if value.__module__ == module.__name__
    }
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def examples() -> dict[type, set[str]]:
    return shown()


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_every_statement_and_every_clause_has_an_example(
    cls: type, examples: dict[type, set[str]]
) -> None:
    assert cls in examples, f"no SQL block in docs/sql has a {cls.__name__}: {cls.__doc__}"
    optional = {f.name for f in fields(cls) if default_of(f) is not MISSING} - {"position"}
    lacking = optional - examples[cls]
    assert not lacking, f"no SQL block in docs/sql has a {cls.__name__} with {lacking}"


def test_all_statements_are_looked_at() -> None:
    union = statement_classes.Statement
    assert isinstance(union, UnionType)
    assert set(union.__args__) < set(classes())


def words_of_parsers() -> set[str]:
    """Return the words that parsers ask for: ``cursor.accept("ON", "ORPHAN")``."""
    asked = {"accept", "expect", "choose", "sees"}
    return {
        argument.value
        for path in PARSERS.glob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in asked
        for argument in call.args
        if isinstance(argument, ast.Constant)
        if isinstance(argument.value, str) and argument.value.isalpha()
    }


def test_every_word_is_in_the_syntax() -> None:
    syntax = " ".join(re.findall(r"^```text\n(.*?)^```$", "\n".join(PAGES.values()), re.M | re.S))
    words = words_of_parsers()
    assert {"SUBSCRIBE", "ORPHAN", "CONFLUENT"} <= words
    refused = {"FOREIGN"}
    lacking = {word for word in words if not re.search(rf"\b{word}\b", syntax)} - refused
    assert not lacking, f"no syntax block (```text) in docs/sql has {sorted(lacking)}"


def test_every_page_is_in_the_index() -> None:
    for name in PAGES:
        assert name == "README.md" or f"({name}" in PAGES["README.md"], f"docs/sql/{name}"


def test_statements_that_are_refused_are_listed() -> None:
    expected = [f"| `{words}` | {hint} |" for words, hint in sorted(_MISSING.items())]
    actual = [f"| {' | '.join(row)} |" for row in cells(PAGES["README.md"], "| refused |")]
    assert actual == expected, "docs/sql/README.md should say:\n" + "\n".join(expected)


# options


@pytest.mark.parametrize("page", OPTIONS)
def test_every_option_is_documented_with_its_type(page: str) -> None:
    rows = cells(PAGES[page], "| option |")
    said = {re.findall(r"`([^`]+)`", row[0])[0]: row[1] for row in rows}
    said = {name: kind for name, kind in said.items() if not name.endswith(".*")}
    assert said == OPTIONS[page], f"the tables of options in docs/sql/{page}"


# functions


def argument_of(parameter: object) -> str:
    return str(getattr(parameter, "name", None) or parameter)


def row_of(name: str, overloads: list[Overload] | list[Aggregate]) -> str:
    """Return the row of a function: how it is called, what it gives, what can go wrong."""
    calls, results, codes = [], [], set()
    for one in overloads:
        more = ", …" if getattr(one, "variadic", False) else ""
        calls.append(f"`{name}({', '.join(map(argument_of, one.parameters))}{more})`")
        results.append("as given" if callable(one.result) else str(one.result))
        codes |= {failure.code for failure in getattr(one, "failures", ())}
    shown = list(dict.fromkeys(results))
    failing = ", ".join(f"`{code}`" for code in sorted(codes)) or "–"
    return f"| {' '.join(dict.fromkeys(calls))} | {', '.join(shown)} | {failing} |"


def function_rows() -> list[str]:
    """Return the rows that docs/sql/functions.md must have, by subject."""
    rows = []
    for subject in _SUBJECTS:
        others = INTERNAL | WORDS
        named = [o for o in subject.OVERLOADS if o.name.isidentifier() and o.name not in others]
        named.sort(key=lambda o: o.name)
        rows += [row_of(n, list(same)) for n, same in groupby(named, key=lambda o: o.name)]
    for table in (AGGREGATES, WINDOWS):
        known = [a for a in table if a.name not in INTERNAL]
        rows += [row_of(n, list(same)) for n, same in groupby(known, key=lambda a: a.name)]
    return rows


def test_every_function_is_documented() -> None:
    lacking = [row for row in function_rows() if row not in page_of(FUNCTIONS_PAGE).splitlines()]
    assert not lacking, f"{FUNCTIONS_PAGE} should say:\n" + "\n".join(lacking)


def test_no_function_is_documented_that_is_not_there() -> None:
    said = cells(page_of(FUNCTIONS_PAGE), "| function | gives |")
    assert {f"| {' | '.join(row)} |" for row in said} == set(function_rows())


def test_operators_other_names_and_fields_are_documented() -> None:
    text = page_of(FUNCTIONS_PAGE)
    operators = {name for name in FUNCTIONS if not name.isidentifier()} | WORDS
    fielded = ("extract ", "date_trunc ", "like ", "is ")
    for name in {n for n in operators if not n.startswith(fielded)}:
        assert f"`{name.upper()}`" in text, f"{FUNCTIONS_PAGE} lacks the operator {name}"
    others = {*SYNONYMS, *AGGREGATE_SYNONYMS, *FORBIDDEN, *EXTRACT_FIELDS, *TRUNC_FIELDS}
    for name in others:
        assert f"`{name}`" in text, f"{FUNCTIONS_PAGE} lacks {name}"


# error codes


def codes_of(package: Path) -> set[str]:
    """Return the SQLSTATEs in the code: what whole literals are, or begin with before a bar."""
    literals = (
        node.value
        for path in package.rglob("*.py")
        if path.parent.name != "testing"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = (text.partition("|")[0] for text in literals if text[5:6] in ("", "|"))
    return {code for code in found if SQLSTATE.fullmatch(code) and not code.isalpha()}


def test_every_code_is_documented() -> None:
    rows = cells(page_of("docs/errors.md"), "| code |")
    said = [code for row in rows for code in re.findall(r"`(\w{5})`", row[0])]
    assert said == sorted(said)
    codes = codes_of(ROOT / "src" / "reclock")
    assert {"42P01", "22012", "XX001"} <= codes
    assert not codes - set(said), "the table of codes in docs/errors.md lacks these"
    assert not set(said) - codes, "the table of codes in docs/errors.md has codes that nothing has"
