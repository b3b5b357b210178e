"""What a page says to a program."""

from __future__ import annotations

from documents import Part, Statement, parts, statements

PAGE = """\
# A page

<!-- file a/b.csv
1,2
-->
<!-- time 5 minutes -->
<!-- sql
CREATE TABLE hidden (a INT);
-->
<!-- a comment -->
```sql
SELECT ';'; -- a comment
SELECT 1 / 0;  -- ERROR 22012: division
```

```text
SELECT …
```
```postgres
ALTER SYSTEM SET x = 1;
```
"""


def said(text: str) -> list[Statement]:
    return list(statements(Part("sql", "", text, 1)))


def test_parts_come_in_their_order() -> None:
    file, time, hidden, shown, there = parts(PAGE)
    assert file == Part("file", "a/b.csv", "1,2\n", 4)
    assert time == Part("time", "5 minutes", "", 7)
    assert hidden == Part("sql", "", "CREATE TABLE hidden (a INT);\n", 8)
    assert (shown.kind, shown.line) == ("sql", 12)
    assert there == Part("postgres", "", "ALTER SYSTEM SET x = 1;\n", 20)
    first, second = statements(shown)
    assert first == Statement("SELECT ';'", 12)
    assert second == Statement("SELECT 1 / 0", 13, "22012", "division")


def test_statements_need_no_semicolon_at_the_end() -> None:
    assert [s.text for s in said("SELECT 1;; SELECT 2 -- two")] == ["SELECT 1", "SELECT 2"]
    assert said("-- nothing") == []


def test_rows_stand_below_a_statement() -> None:
    text = "SELECT 1; -- some words\n--  a | b\n-- ---+---\n--  1 | x  \n\nSELECT 2; --- no rule"
    first, second = said(text)
    assert first.rows == " a | b\n---+---\n 1 | x"
    assert second.rows is None
