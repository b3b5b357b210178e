"""Templates of records, and which payloads fit them."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format.fitting import Payloads, cut, fit
from reclock.connectors.format.template import Template, template_of

names = st.sampled_from(["a", "b", "id", "ü", "a b", "{", ":,"])
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(0, 9) | st.text('x",\\{ é', max_size=4)
)
records = st.recursive(
    st.dictionaries(names, scalars, max_size=3),
    lambda inner: st.dictionaries(names, scalars | inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize(
    "sample",
    [
        b"", b"{", b"[1]", b"1", b"{}", b'{"a": null}', b'{"a": {}}', b'{"a": [1]}', b'{"a": []}',
        b'{"a": 1, "a": 2}', b'{"a": {"b": 1}, "a": 2}', b'{"\\u0061": 1}', b'{"a": "\xff"}',
        b'{"a": {"b": 1, "b": 2}}',
    ],
)  # fmt: skip
def test_what_has_no_template(sample: bytes) -> None:
    assert template_of(sample) is None


def test_literals_holes_objects_and_nulls() -> None:
    found = template_of(b' {"a" : -1.5e3 ,\n"b":{"c":"x\\"y","d":{}, "e":null},"f":true} ')
    assert found is not None
    assert found.literals == (
        b' {"a" : ', b' ,\n"b":{"c":"', b'","d":{}, "e":null},"f":', b"} ",
    )  # fmt: skip
    assert [(hole.path, hole.quoted) for hole in found.holes] == [
        (("a",), False), (("b", "c"), True), (("f",), False),
    ]  # fmt: skip
    assert found.objects == {(), ("b",), ("b", "d")}
    assert found.nulls == {("b", "e")}


@given(records, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]))
def test_a_sample_fits_its_template(record: dict[str, object], separators: tuple[str, str]) -> None:
    sample = json.dumps(record, ensure_ascii=False, separators=separators).encode()
    template = template_of(sample)
    if template is None:
        return
    assert len(template.literals) == len(template.holes) + 1
    rows, holes = fit(Payloads.of(pa.array([sample])), template)
    if rows[0]:
        memory = Payloads.of(pa.array([sample]))
        inside = [cut(memory, *hole)[0].as_py().encode() for hole in holes]
        parts = [
            part for pair in zip(template.literals, [*inside, b""], strict=True) for part in pair
        ]
        assert b"".join(parts) == sample
    else:
        assert b'\\"' in sample


def pattern_of(template: Template) -> re.Pattern[bytes]:
    """Return what fits by the definition, for holes without quotes."""
    return re.compile(b'([^"]*)'.join(map(re.escape, template.literals)), re.DOTALL)


BASES = [
    b'{"id":1,"s":"x"}',
    b'{"a": {"b": "y", "c": 2.5}, "d": true}',
    b'{"n":12345678, "q":null}',
]


@st.composite
def mutants(draw: st.DrawFn, base: bytes) -> bytes:
    changed = bytearray(base)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(changed)))
        stop = draw(st.integers(at, min(at + 2, len(changed))))
        changed[at:stop] = draw(
            st.sampled_from([b"", b'"', b"1", b"}", b"x", b'"id":', b"{", b", "])
        )
    return bytes(changed)


@given(st.data(), st.sampled_from(BASES))
@settings(max_examples=500)
def test_fit_is_the_definition(data: st.DataObject, base: bytes) -> None:
    template = template_of(base)
    assert template is not None
    texts = [p.decode() for p in data.draw(st.lists(mutants(base), max_size=5))]
    payloads = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    found = [pattern_of(template).fullmatch(text.encode()) for text in texts]
    rows, holes = fit(Payloads.of(payloads), template)
    assert rows.tolist() == [match is not None for match in found]
    memory = Payloads.of(payloads)
    inside = [cut(memory, *hole).to_pylist() for hole in holes]
    assert list(zip(*inside, strict=True)) == [
        tuple(group.decode() for group in match.groups()) for match in found if match is not None
    ]
