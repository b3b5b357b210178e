"""Documents that cannot rot: what they name exists, what they list is complete, examples run."""

from __future__ import annotations

import ast
import doctest
import io
import re
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from reclock import errors
from reclock.arrangement import run
from reclock.catalog import item, roles, settings
from reclock.connectors.files import source as files
from reclock.connectors.generator import source as generator
from reclock.durable import manifest_store, oracle_store
from reclock.durable.migrate import MIGRATIONS
from reclock.engine import write_log as wal
from reclock.failpoints import NAMES
from reclock.session.database import Database
from reclock.sinks import consistency
from reclock.system import RELATIONS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "reclock"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

WORDS = (
    "antichain", "arrangement", "as_of", "binding", "chunk", "closed", "dead letter", "definite",
    "delta", "diff", "draft", "errand", "frontier", "hold", "intake", "look-up", "lower",
    "manifest", "oracle", "pace", "reclock", "remap", "resume", "run", "segment", "shard",
    "since", "staged run", "tick", "timeline", "timestamp", "trace", "until", "update", "upper",
    "witness", "world",
)  # fmt: skip
"""What every reader of the code must know; docs/glossary.md may have more."""

TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
PATH = re.compile(r"(?<![\w/.-])(?:src/reclock|tests|docs|benchmarks|examples)/[\w/.-]*[\w/]")
MODULE = re.compile(r"`(reclock(?:\.\w+)+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TARGET = re.compile(r"`make ([a-z-]+)`|^make ([a-z-]+)(?= *(?:#|$))", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)
WIDTH = 120
FILES = ("reclock.db", "reclock.toml")
TREE = re.compile(r"^    ([│├└─ ]*)(\w+) +([0-9A-Z]{5})  (.+)$", re.MULTILINE)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def table(path: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the table in ``path`` that begins with ``heading``."""
    lines = read(ROOT / path).splitlines()
    (start,) = (n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert rows
    assert all(cell for row in rows for cell in row), f"{path} has an empty cell"
    return rows


def layers() -> list[str]:
    """Return the packages that ARCHITECTURE.md names."""
    return [
        package
        for _, packages, _ in table("ARCHITECTURE.md", "layer")
        for package in re.findall(r"`(\w+)/?`", packages)
    ]


@cache
def collected(path: Path) -> set[str]:
    """Return the names pytest collects: functions, and the test cases of state machines."""
    body = ast.parse(read(path)).body
    named = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {name for name in named | assigned if name.lower().startswith("test")}


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", read(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, an attribute of one, a system relation or a file."""
    if name in FILES or name in RELATIONS:
        return True
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def missing_files(text: str) -> list[str]:
    """Return the paths and tests that ``text`` names in vain."""
    paths = [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    tests = [
        f"{path}::{test}"
        for path, test in TEST.findall(text)
        if (ROOT / path).exists() and test not in collected(ROOT / path)
    ]
    return [*paths, *tests]


def missing_in(text: str) -> list[str]:
    """Return the paths, tests, modules and make targets that ``text`` names in vain."""
    modules = [name for name in MODULE.findall(text) if not resolves(name)]
    known = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    targets = [f"make {a or b}" for a, b in TARGET.findall(text) if (a or b) not in known]
    return [*missing_files(text), *modules, *targets]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_what_a_document_names_exists(document: Path) -> None:
    assert not missing_in(read(document))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_lines_fit_a_screen(document: Path) -> None:
    """Tables, code and the addresses of links may be longer."""
    prose = COMMENT.sub("", FENCE.sub("", read(document)))
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert not [line for line in lines if len(re.sub(r"\]\([^)]*\)", "]", line)) > WIDTH]


def cells(row: str) -> int:
    """Return how many cells a row of a table has; bars in code, or escaped, are text."""
    return re.sub(r"`[^`]*`", "", row.replace(r"\|", "")).strip().strip("|").count("|") + 1


def torn(text: str) -> list[str]:
    """Return the rows of tables that are not as wide as the first, and items within a line."""
    found, wide = [], 0
    for line in FENCE.sub("", COMMENT.sub("", text)).splitlines():
        if line.startswith("|"):
            wide = wide or cells(line)
            if cells(line) != wide or not line.rstrip().endswith("|"):
                found.append(line)
            continue
        if wide and line.strip():
            found.append(line)
        wide = 0
        plain = re.sub(r"`[^`]*`", "``", line)
        if re.search(r"[.:;?!)`] [-*]( (\*\*|``|\*?[A-Z])|$)", plain):
            found.append(line)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_tables_and_lists_are_whole(document: Path) -> None:
    assert not torn(read(document))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2\n3 |\n", ["| 1 | 2", "3 |"]),
        ("| a | `b|c` |\n|---|---|\n| 1 | 2 | | 3 | 4 |\n", ["| 1 | 2 | | 3 | 4 |"]),
        ("- `a` is. - `b` is not.\n- a - b, 3 - 1\n", ["- `a` is. - `b` is not."]),
        ("- **A.** See b. - **C** is.\n", ["- **A.** See b. - **C** is."]),
        ("- a. -\n  b\n", ["- a. -"]),
        ("| a |\n|---|\n| `x\\|y` |\n\nText - with a dash. A.\n", []),
    ],
)
def test_torn_tables_and_lists_are_found(text: str, expected: list[str]) -> None:
    assert torn(text) == expected


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(FENCE.sub("", read(document))):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(path), link


def test_module_headers_name_tests_that_exist() -> None:
    missing = {
        name_of(path): names
        for path in sorted(PACKAGE.rglob("*.py"))
        if (names := missing_files(ast.get_docstring(ast.parse(read(path))) or ""))
    }
    assert not missing


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_docs.py::test_of_nothing",
        "see tests/test_nothing.py.",
        "[x](src/reclock/nothing.py)",
        "`reclock.nothing`",
        "`reclock.errors.Nothing`",
        "`make nothing`",
        "make nothing",
    ],
)
def test_what_does_not_exist_is_noticed(text: str) -> None:
    assert len(missing_in(text)) == 1


SPARK = {ROOT / f"docs/{page}.md" for page in ("reads", "sources", "timelines")}
"""Aggregates as of a past time are Spark jobs."""


@pytest.mark.parametrize(
    "document",
    [pytest.param(d, marks=pytest.mark.spark) if d in SPARK else d for d in DOCUMENTS],
    ids=name_of,
)
def test_examples_run(document: Path) -> None:
    """Blocks of one document share their names, as a session does."""
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False)
    report = io.StringIO()
    text = read(document)
    for block in FENCE.finditer(text):
        language, code = block.groups()
        if language == "python" and ">>>" in code:
            line = text.count("\n", 0, block.start(2))
            example = doctest.DocTestParser().get_doctest(
                code, {}, name_of(document), str(document), line
            )
            example.globs = names
            with redirect_stdout(report):
                runner.run(example, clear_globs=False)
    assert runner.failures == 0, report.getvalue()


def programs(document: Path) -> list[str]:
    """Return the Python blocks that are no sessions, only what one would write into a file."""
    blocks = FENCE.findall(read(document))
    return [code for language, code in blocks if language == "python" and ">>>" not in code]


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if programs(d)], ids=name_of)
def test_programs_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    try:
        for code in programs(document):
            exec(compile(code, name_of(document), "exec"), names)
    finally:
        if isinstance(db := names.get("db"), Database):
            db.close()


def test_the_first_program_works_when_pasted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = FENCE.findall(read(ROOT / "README.md"))
    at = next(n for n, (language, _) in enumerate(fences) if language == "python")
    program, (_, shown) = fences[at][1], fences[at + 1]
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with redirect_stdout(io.StringIO()) as printed:
            exec(program, {})
        assert printed.getvalue() == shown


def test_some_document_has_examples() -> None:
    assert ">>>" in read(ROOT / "docs" / "formalism.md")
    assert programs(ROOT / "README.md")


def test_every_definition_names_its_test() -> None:
    _, *sections = re.split(r"^## ", read(ROOT / "docs" / "formalism.md"), flags=re.MULTILINE)
    without = [section.splitlines()[0] for section in sections if not TEST.search(section)]
    assert sections
    assert not without


def test_the_layers_table_is_the_tree() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert sorted(layers()) == sorted(there - {"__init__", "__pycache__"})


def test_the_glossary_has_every_word_and_covers_the_core() -> None:
    rows = table("docs/glossary.md", "word")
    words = [word.strip("`") for row in rows for word in row[0].split(", ")]
    assert words == sorted(words, key=str.lower)
    assert set(WORDS) <= set(words)
    named = {path for row in rows for path in PATH.findall(row[2])}
    core = {
        name_of(path)
        for package in ("time", "change", "remap")
        for path in (PACKAGE / package).glob("*.py")
        if path.name != "__init__.py"
    }
    assert core <= named, "every module of the core defines a word"


def test_every_word_of_the_glossary_is_used() -> None:
    """In the documents or in the code, where CountedAntichain is a counted antichain."""
    pages = [read(page) for page in DOCUMENTS if page.name != "glossary.md"]
    text = " ".join([*pages, *(read(path) for path in PACKAGE.rglob("*.py"))]).lower()
    text = re.sub(r"\s+(?:#:?\s+)?", " ", text)
    words = [word for row in table("docs/glossary.md", "word") for word in row[0].split(", ")]
    forms = {word: re.escape(word.lower()).replace("\\ ", " ?") for word in words}
    assert not [word for word, form in forms.items() if not re.search(rf"\b{form}", text)]


def test_errors_are_documented() -> None:
    ours = {
        name: value.sqlstate
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.Error)
    }
    rows = table("docs/errors.md", "error")
    assert {row[0].strip("`"): row[1].strip("`") for row in rows} == ours
    assert len(rows) == len(ours)
    assert {len(row) for row in rows} == {4}


def test_the_tree_of_errors_is_the_tree_of_classes() -> None:
    drawn: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    for branch, name, code, _ in TREE.findall(errors.__doc__ or ""):
        path[len(branch) // 4 :] = [name]
        drawn[name] = (path[-2] if len(path) > 1 else "Exception", code)
    assert drawn == {
        name: (value.__base__.__name__, value.sqlstate)
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.Error) and value.__base__
    }


def test_every_concept_has_a_picture() -> None:
    _, *sections = re.split(r"^## ", read(ROOT / "docs/concepts.md"), flags=re.MULTILINE)
    drawn = {s.split("\n")[0] for s in sections if FENCE.search(s) and re.search("[─═]", s)}
    concepts = ("remap", "tick", "arrangement", "transaction", "Timelines", "Expiration")
    for concept in concepts:
        assert any(concept in title for title in drawn), f"docs/concepts.md draws no {concept}"


def test_figures_are_those_that_were_measured() -> None:
    measured = read(ROOT / "docs/performance.md")
    for row in table("docs/comparison.md", "| A: processor time"):
        for cell in row[1:5]:
            figures = re.findall(r"[\d.]+", cell)
            assert figures
            assert all(re.search(rf"\b{re.escape(f)}\b", measured) for f in figures), row
    sizes = re.findall(r"\b\d+\.\d+\b", read(ROOT / "docs/sizing.md"))
    rounded = {"1.0", "1.1", "1.4", "2.0", "2.6", "0.13"}  # 1062 thousand, 1989 MiB, …
    assert not {s for s in sizes if s not in measured} - rounded


def test_versions_of_formats_are_documented() -> None:
    rows = {row[0].split(":")[0]: row[1] for row in table("docs/upgrading.md", "what")}
    assert rows == {
        "the store": str(len(MIGRATIONS)),
        "objects of the catalog": str(item.VERSION),
        "settings": str(settings.VERSION),
        "roles": str(roles.VERSION),
        "facts of file sources": str(files.VERSION),
        "writes that no tick has taken yet": str(wal.VERSION),
        "oracles": str(oracle_store.VERSION),
        "manifests": str(manifest_store.VERSION),
        "references to runs": str(run.VERSION),
        "load generators": str(generator.VERSION),
        "progress of sinks, in the consistency topic": str(consistency.VERSION),
    }


def test_the_table_of_failpoints_is_the_list_of_names() -> None:
    expected = [f"| `{name}` | {step} |" for name, step in NAMES.items()]
    actual = [line for line in read(ROOT / "docs/failpoints.md").splitlines() if "| `" in line]
    assert actual == expected, "docs/failpoints.md should say:\n" + "\n".join(expected)


def test_every_failpoint_is_hit_somewhere() -> None:
    sources = "".join(read(path) for path in PACKAGE.rglob("*.py") if path.stem != "failpoints")
    hit = set(re.findall(r'\bhit\("([^"]+)"\)', sources))
    assert hit == set(NAMES)
