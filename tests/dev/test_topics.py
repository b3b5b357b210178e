"""Topics at the prompt: ``reclock dev kafka topic | produce | consume``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from reclock.cli.main import cli
from reclock.dev.topics import parse_line
from reclock.errors import BrokerFailed, InvalidValue

if TYPE_CHECKING:
    from click.testing import Result


def reclock(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["dev", "kafka", *arguments], given, prog_name="reclock")


@pytest.mark.kafka
def test_what_is_written_is_read(kafka):
    broker = ("--broker", kafka.address)
    assert reclock("topic", "prompt", *broker).stdout == "created: prompt\n"
    assert reclock("topic", "prompt", *broker).stdout == "already there: prompt\n"
    written = reclock("produce", "prompt", *broker, given='{"id": 1}\n\n{"id": 2}\n')
    assert "2 records written to prompt" in written.stderr
    keyed = reclock("produce", "prompt", "--separator", "|", *broker, given="7|seven\n7|\n")
    assert keyed.exit_code == 0
    read = reclock("consume", "prompt", *broker)
    assert read.stdout == '{"id": 1}\n{"id": 2}\nseven\n\n'
    read = reclock("consume", "prompt", "--separator", "|", *broker)
    assert read.stdout == '|{"id": 1}\n|{"id": 2}\n7|seven\n7|\n'


@pytest.mark.kafka
def test_a_topic_that_is_not_there_is_said(kafka):
    failed = reclock("consume", "nowhere_at_all", "--broker", kafka.address)
    assert isinstance(failed.exception, InvalidValue)
    assert "reclock dev kafka topic" in (failed.exception.hint or "")
    failed = reclock("topic", "a topic?", "--broker", kafka.address)
    assert isinstance(failed.exception, BrokerFailed)


def test_a_line_without_its_separator_is_said():
    with pytest.raises(InvalidValue, match="no separator"):
        parse_line("seven", "|")
