"""The options of COPY: both ways to write them mean the same, and what does not fit is refused."""

from __future__ import annotations

import pytest

from reclock.errors import Error
from reclock.sql.parse import parse_statement
from reclock.sql.statement.copy import CopyFormat

CSV = CopyFormat("csv", ",", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", CopyFormat()),
        ("(FORMAT text)", CopyFormat()),
        ("WITH (FORMAT csv)", CSV),
        ("CSV", CSV),
        ("WITH CSV HEADER DELIMITER ';' NULL 'x' QUOTE '''' ESCAPE '!'",
         CopyFormat("csv", ";", "x", "on", "'", "!")),
        ("(FORMAT csv, HEADER, DELIMITER ';', NULL 'x', QUOTE '''', ESCAPE '!')",
         CopyFormat("csv", ";", "x", "on", "'", "!")),
        ("(FORMAT csv, HEADER false, FORCE_QUOTE *)", CopyFormat("csv", ",", "", force_quote=None)),
        ("CSV FORCE QUOTE a, b", CopyFormat("csv", ",", "", force_quote=("a", "b"))),
        ("(FORMAT binary)", CopyFormat("binary")),
        ("BINARY", CopyFormat("binary")),
        ("(DELIMITER '|', NULL '', ENCODING 'UTF8')", CopyFormat("text", "|", "")),
    ],
)  # fmt: skip
def test_options(text, wanted):
    assert parse_statement(f"COPY t TO STDOUT {text}").format == wanted


def test_options_of_what_comes():
    found = parse_statement(
        "COPY t FROM STDIN (FORMAT csv, HEADER match, FORCE_NULL (a), FORCE_NOT_NULL (b, c))"
    ).format
    assert (found.header, found.force_null, found.force_not_null) == ("match", ("a",), ("b", "c"))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("COPY t TO STDOUT (FORMAT xml)", "22023"),
        ("COPY t TO STDOUT (COLOR red)", "42601"),
        ("COPY t TO STDOUT (FORMAT csv, FORMAT csv)", "42601"),
        ("COPY t TO STDOUT (HEADER match)", "42601"),
        ("COPY t TO STDOUT (QUOTE '\"')", "0A000"),
        ("COPY t TO STDOUT (FORMAT binary, DELIMITER ',')", "42601"),
        ("COPY t TO STDOUT (FORMAT csv, DELIMITER '||')", "0A000"),
        ("COPY t TO STDOUT (FORMAT csv, DELIMITER '\"')", "22023"),
        ("COPY t TO STDOUT (FORMAT csv, NULL 'a,b')", "0A000"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_NULL (a))", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)", "0A000"),
        ("COPY t TO STDOUT (FREEZE)", "0A000"),
        ("COPY t FROM STDIN (FREEZE perhaps)", "42601"),
        ("COPY t TO STDOUT (DEFAULT 'x')", "0A000"),
        ("COPY t FROM STDIN (FORMAT binary, DEFAULT 'x')", "42601"),
        ("COPY t FROM STDIN (FORMAT csv, DEFAULT ',')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, DEFAULT '')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, DEFAULT '\"')", "0A000"),
        ("COPY t FROM STDIN (DEFAULT '\n')", "22023"),
        ("COPY t FROM STDIN (ENCODING 'latin1')", "0A000"),
        ("COPY t FROM STDIN CSV SOMETHING", "42601"),
        ("COPY t FROM STDIN WHERE a > 1", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv) WHERE a > 1", "0A000"),
    ],
)
def test_what_is_refused(statement, code):
    with pytest.raises(Error) as caught:
        parse_statement(statement)
    assert caught.value.code == code
