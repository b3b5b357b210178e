from __future__ import annotations

from typing import Any

import pytest

from reclock.errors import Error, InvalidDefinition, NotSupported, UndefinedName
from reclock.sinks.encode.avro_format import AvroFormat
from reclock.sinks.encode.cdcv2 import AvroWording, Cdcv2Encoder, JsonWording
from reclock.sinks.encode.choose import Wanted, encoder_of
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.shadow import ShadowEncoder
from reclock.sinks.encode.upsert import UpsertEncoder
from reclock.sql import types as t
from reclock.sql.schema import Column, Schema
from reclock.sql.statement.source import Format
from reclock.testing.schema_registry import running_registry

SCHEMA = Schema((Column("a", t.BIGINT), Column("b", t.TEXT)))
JSON = Format("json")


def wanted(envelope: str, *key: str, format: Format = JSON, **rest: Any) -> Wanted:  # noqa: A002 - the statement's word
    return Wanted("t", format, envelope, key, **rest)


def test_json() -> None:
    keyed = JsonFormat(SCHEMA.columns, (1,))
    assert encoder_of(wanted("upsert", "b"), SCHEMA) == UpsertEncoder(keyed, (1,))
    assert encoder_of(wanted("debezium", "b"), SCHEMA) == DebeziumEncoder(keyed, (1,))
    plain = JsonFormat(SCHEMA.columns)
    assert encoder_of(wanted("debezium"), SCHEMA) == DebeziumEncoder(plain, ())
    assert encoder_of(wanted("materialize"), SCHEMA) == Cdcv2Encoder(JsonWording(plain))


def test_a_key_that_is_not_enforced() -> None:
    def contents(*_: object) -> Any:
        raise AssertionError

    made = encoder_of(wanted("upsert", "b", "a", contents=contents), SCHEMA)
    assert made == ShadowEncoder(JsonFormat(SCHEMA.columns, (1, 0)), (1, 0), contents)


def test_avro() -> None:
    with running_registry() as registry:
        avro = Format("avro", registry=registry.url)
        made = encoder_of(wanted("upsert", "a", format=avro), SCHEMA)
        assert isinstance(made, UpsertEncoder)
        assert isinstance(made.format, AvroFormat)
        change = encoder_of(wanted("debezium", "a", format=avro), SCHEMA)
        assert isinstance(change, DebeziumEncoder)
        assert isinstance(change.format, AvroFormat)
        assert change.format.ids.key == made.format.ids.key
        assert change.format.ids.value != made.format.ids.value
        said = encoder_of(wanted("materialize", format=avro), SCHEMA)
        assert isinstance(said, Cdcv2Encoder)
        assert isinstance(said.wording, AvroWording)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (wanted("upsert"), InvalidDefinition),
        (wanted("upsert", "c"), UndefinedName),
        (wanted("materialize", "a"), InvalidDefinition),
        (wanted("none"), NotSupported),
        (wanted("upsert", "a", format=Format("csv")), NotSupported),
        (wanted("upsert", "a", format=Format("avro")), InvalidDefinition),
    ],
)
def test_what_cannot_be(given: Wanted, error: type[Error]) -> None:
    with pytest.raises(error) as raised:
        encoder_of(given, SCHEMA)
    assert raised.value.hint
