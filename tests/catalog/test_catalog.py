"""The catalog as a fold: names, ids, dependencies, and reading itself back."""

from __future__ import annotations

import pytest

from reclock.catalog.catalog import Catalog
from reclock.errors import Corrupt, DependentObjects, DuplicateName, NewerFormat, UndefinedName
from reclock.ids import ObjectId
from reclock.session.define_table import define_table
from reclock.session.definition import define_index, define_view, load_catalog
from reclock.sql.parse import parse_statement
from reclock.sql.syntax.expression import Name
from reclock.system import RELATIONS


def create(catalog, sql, define):
    return catalog.changed([define(parse_statement(sql), sql, catalog)], ())


def one_table(statement, sql, catalog):
    return define_table(statement, sql, catalog)[0]


@pytest.fixture
def catalog():
    made = create(
        Catalog(system=RELATIONS), "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)", one_table
    )
    made = create(made, "CREATE VIEW v AS SELECT b FROM t", define_view)
    made = create(made, "CREATE VIEW w AS SELECT v.b FROM v JOIN t ON v.b = t.b", define_view)
    return create(made, "CREATE INDEX i ON t (b)", define_index)


def test_ids_count_versions_and_are_never_given_twice(catalog):
    assert list(catalog.items) == ["u1", "u2", "u3", "u4"]
    dropped = catalog.changed((), [ObjectId("u4")])
    again = create(dropped, "CREATE INDEX i ON t (b)", define_index)
    assert list(again.items) == ["u1", "u2", "u3", "u6"]


def test_dependencies_are_what_the_text_names(catalog):
    by_name = {item.name: item for item in catalog.items.values()}
    assert by_name["v"].depends == {"u1"}
    assert by_name["w"].depends == {"u1", "u2"}
    assert by_name["i"].depends == {"u1"}
    assert catalog.dependents([ObjectId("u1")]) == {"u2", "u3", "u4"}
    assert catalog.dependents([ObjectId("u3")]) == frozenset()


def test_what_others_need_is_dropped_with_them_or_not_at_all(catalog):
    with pytest.raises(DependentObjects) as caught:
        catalog.to_drop([ObjectId("u2")], cascade=False)
    assert caught.value.code == "2BP01"
    assert caught.value.detail == "view w depends on view v"
    assert "CASCADE" in caught.value.hint
    assert catalog.to_drop([ObjectId("u1")], cascade=True) == {"u1", "u2", "u3", "u4"}
    assert catalog.to_drop([ObjectId("u2"), ObjectId("u3")], cascade=False) == {"u2", "u3"}


def test_an_index_goes_with_its_table(catalog):
    alone = catalog.changed((), [ObjectId("u2"), ObjectId("u3")])
    assert alone.to_drop([ObjectId("u1")], cascade=False) == {"u1", "u4"}


def test_names_are_found_with_and_without_their_schema(catalog):
    assert catalog.resolve(("public", "t")) == catalog.resolve(("t",))
    assert catalog.resolve(("other", "t")) is None
    assert catalog.resolve(("i",)) is None, "an index is no relation"
    assert catalog.relation_names() == ("t", "v", "w", *RELATIONS)
    with pytest.raises(UndefinedName) as caught:
        catalog.get(Name(("vv",)), type(catalog[ObjectId("u2")]))
    assert caught.value.hint == 'perhaps you meant "v"'


@pytest.mark.parametrize("name", ["t", "v", "i"])
def test_all_objects_share_one_name_space(catalog, name):
    with pytest.raises(DuplicateName):
        catalog.check_new(Name((name,)))


def test_a_new_name_in_an_unknown_schema_is_refused(catalog):
    with pytest.raises(UndefinedName) as caught:
        catalog.check_new(Name(("elsewhere", "x")))
    assert caught.value.code == "3F000"


class Stored:
    def __init__(self, records):
        self.records = records
        self.version = 7

    def items(self):
        return self.records


def test_records_read_back_as_the_same_objects(catalog):
    records = {item.id: item.record() for item in reversed(catalog.items.values())}
    again = load_catalog(Stored(records))
    assert again.items == catalog.items
    assert again.version == 7


@pytest.mark.parametrize(
    "record",
    [{"v": 1}, {"v": 1, "name": "t", "sql": "SELECT 1"}, {"v": 1, "name": "t", "sql": "CREATE"}],
)
def test_a_record_that_makes_no_object_is_corrupt(record):
    with pytest.raises(Corrupt):
        load_catalog(Stored({ObjectId("u1"): record}))


def test_a_newer_record_is_refused():
    with pytest.raises(NewerFormat):
        load_catalog(Stored({ObjectId("u1"): {"v": 99}}))
