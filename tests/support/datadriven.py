"""Tests as text: a directive, its input, and the output that is expected.

A file is a list of cases::

    # why this case exists
    directive argument key=value
    input line
    ----
    expected line

A blank line ends a case; a line before a directive that begins with ``#`` is a comment.
``run`` calls a dispatcher for each case, in order, so that it may keep state between
them, and compares. With ``rewrite`` it writes what the dispatcher said into the file
instead, for a person to review. Errors of reclock are output like any other: ``error
22023: message``, then their detail and hint.

Self-test: tests/datadriven/test_runner.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.errors import Error, InvalidValue
from reclock.time.frontier import CLOSED, Bounds, Frontier, at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SEPARATOR: Final = "----"


@dataclass(frozen=True, slots=True)
class Case:
    """One directive of a file, and the line it stands on."""

    line: int
    directive: str
    args: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    input: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


def parse(text: str) -> list[Case]:
    r"""Return the cases of a file.

    >>> (case,) = parse("sum scale=10 now\n1 2\n----\n30\n")
    >>> case.directive, case.args, case.options, case.input, case.expected
    ('sum', ('now',), {'scale': '10'}, ('1 2',), ('30',))
    """
    cases: list[Case] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].startswith("#"):
            number += 1
            continue
        end = next((n for n in range(number, len(lines)) if not lines[n].strip()), len(lines))
        cases.append(_parse_case(number + 1, lines[number:end]))
        number = end
    return cases


def run(path: Path, dispatch: Callable[[Case], str], *, rewrite: bool = False) -> None:
    """Check every case of the file at ``path``, or record what ``dispatch`` says.

    Raise one ``AssertionError`` that shows every case that differs.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    cases = parse(text)
    if not cases:
        message = f"{path.name} has no cases"
        raise InvalidValue(message)
    answers = [(case, _answer(dispatch, case)) for case in cases]
    if rewrite:
        for case, actual in reversed(answers):
            first = case.line + len(case.input) + 1
            lines[first : first + len(case.expected)] = actual
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    wrong = [
        "\n".join(
            [f"{path.name}:{case.line}: expected", *case.expected, f"{SEPARATOR} but got", *actual]
        )
        for case, actual in answers
        if tuple(actual) != case.expected
    ]
    if wrong:
        raise AssertionError("\n\n".join(wrong))


def parse_frontier(text: str) -> Frontier:
    """Read a frontier of a timeline as it is printed.

    >>> parse_frontier("{5}"), parse_frontier("{}")
    ({5}, {})
    """
    inside = text.removeprefix("{").removesuffix("}")
    return at(int(inside)) if inside else CLOSED


def parse_bounds(line: str) -> Bounds:
    """Read ``name since={s} upper={u}``.

    >>> parse_bounds("orders since={3} upper={}")
    Bounds(object='orders', since={3}, upper={})
    """
    name, since, upper = line.split()
    return Bounds(
        name,
        parse_frontier(since.removeprefix("since=")),
        parse_frontier(upper.removeprefix("upper=")),
    )


def _parse_case(line: int, block: list[str]) -> Case:
    if SEPARATOR not in block:
        message = f"line {line}: a case has no line {SEPARATOR}"
        raise InvalidValue(message)
    middle = block.index(SEPARATOR)
    directive, *words = block[0].split()
    return Case(
        line=line,
        directive=directive,
        args=tuple(word for word in words if "=" not in word),
        options=dict(word.split("=", 1) for word in words if "=" in word),
        input=tuple(block[1:middle]),
        expected=tuple(block[middle + 1 :]),
    )


def _answer(dispatch: Callable[[Case], str], case: Case) -> list[str]:
    try:
        actual = dispatch(case).splitlines()
    except Error as error:
        actual = f"error {error.code}: {error}".splitlines()
    if not all(line.strip() for line in actual):
        message = f"line {case.line}: output has a blank line, which would end the case"
        raise InvalidValue(message)
    return [line.rstrip() for line in actual]
