"""Who is told that Spark starts."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from reclock.spark.notice import say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Cell(io.StringIO):
    """Standard error in a notebook."""


Cell.__module__ = "ipykernel.iostream"


@pytest.fixture
def log():
    """A logger that nothing listens to, as those of a program that has set up nothing."""
    found = logging.Logger("reclock.test", logging.INFO)
    assert not found.hasHandlers()
    return found


@pytest.mark.parametrize(
    ("out", "heard"), [(Terminal(), "Spark …\n"), (Cell(), "Spark …\n"), (io.StringIO(), "")]
)
def test_people_are_told_and_files_are_not(log, monkeypatch, out, heard):
    monkeypatch.setattr(sys, "stderr", out)
    say(log, "Spark …")
    assert out.getvalue() == heard


def test_what_is_logged_is_not_said_twice(log, monkeypatch):
    out, logged = Terminal(), io.StringIO()
    log.addHandler(logging.StreamHandler(logged))
    monkeypatch.setattr(sys, "stderr", out)
    say(log, "Spark …")
    assert (out.getvalue(), logged.getvalue()) == ("", "Spark …\n")


def test_there_may_be_nothing_to_write_to(log, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    say(log, "Spark …")
    closed = Terminal()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say(log, "Spark …")
