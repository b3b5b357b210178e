from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from datadriven import Case, parse, run
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
# sums
add scale=10 loudly
1 2
3
----
60

refuse
----
error 22023: no
hint: try add

"""


def dispatch(case: Case) -> str:
    if case.directive == "refuse":
        message = "no"
        raise InvalidValue(message, hint="try add")
    scale = int(case.options.get("scale", "1"))
    return str(scale * sum(int(word) for line in case.input for word in line.split()))


def written(folder: Path, text: str) -> Path:
    path = folder / "cases.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_cases_are_read_with_arguments_options_input_and_line() -> None:
    first, second = parse(TEXT)
    assert first == Case(2, "add", ("loudly",), {"scale": "10"}, ("1 2", "3"), ("60",))
    assert second == Case(8, "refuse", expected=("error 22023: no", "hint: try add"))


def test_a_file_that_agrees_passes_and_is_left_alone_by_a_rewrite(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    run(path, dispatch)
    run(path, dispatch, rewrite=True)
    assert path.read_text(encoding="utf-8") == TEXT


def test_every_difference_is_shown_with_its_line(tmp_path: Path) -> None:
    text = TEXT.replace("60", "61").replace("try add", "try more")
    with pytest.raises(AssertionError) as caught:
        run(written(tmp_path, text), dispatch)
    message = str(caught.value)
    assert "cases.txt:2: expected\n61\n---- but got\n60" in message
    assert "cases.txt:8: expected" in message


def test_a_rewrite_records_what_was_said_and_keeps_comments(tmp_path: Path) -> None:
    text = TEXT.replace("60\n", "").replace("hint: try add", "a\nb\nc")
    path = written(tmp_path, text)
    run(path, dispatch, rewrite=True)
    assert path.read_text(encoding="utf-8") == TEXT


def test_what_cannot_be_a_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="line 2: a case has no line ----"):
        parse("\nadd\n1\n\n----\n1\n")
    with pytest.raises(InvalidValue, match="has no cases"):
        run(written(tmp_path, "# nothing\n"), dispatch)
    with pytest.raises(InvalidValue, match="output has a blank line"):
        run(written(tmp_path, "x\n----\n"), lambda _: "a\n\nb")
