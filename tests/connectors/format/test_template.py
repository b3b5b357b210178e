"""Templates of records, and which payloads fit them."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format import fitting
from reclock.connectors.format.fitting import fit
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
        b'{"a": {"b": 1, "b": 2}}', b'{"a": 1, "z": 1, "z": 2}',
    ],
)  # fmt: skip
def test_what_has_no_template(sample: bytes) -> None:
    assert template_of(sample, {("a",), ("a", "b")}) is None


def test_literals_holes_and_objects() -> None:
    sample = b' {"a" : -1.5e3 ,\n"b":{"c":"x\\"y","d":{}, "e":null},"f":true} '
    found = template_of(sample, set())
    assert found is not None
    assert found.literals == (
        b' {"a" : ', b' ,\n"b":{"c":"', b'","d":{}, "e":null},"f":', b"} ",
    )  # fmt: skip
    assert [(hole.path, hole.quoted) for hole in found.holes] == [
        (("a",), False), (("b", "c"), True), (("f",), False),
    ]  # fmt: skip
    assert found.objects == {(), ("b",), ("b", "d")}
    assert found.paths == {("a",), ("b",), ("b", "c"), ("b", "d"), ("b", "e"), ("f",)}


def test_what_is_or_has_an_array_and_is_not_wanted_is_a_literal() -> None:
    sample = b'{"s": {"x": [{"y": "\\""}], "z": 1}, "a": 1, "t": [], "b": {"c": [2], "d": 3}}'
    found = template_of(sample, {("a",), ("b",), ("b", "d")})
    assert found is not None
    assert found.literals == (
        b'{"s": {"x": [{"y": "\\""}], "z": 1}, "a": ', b', "t": [], "b": {"c": [2], "d": ', b"}}",
    )  # fmt: skip
    assert found.paths == {("s",), ("a",), ("t",), ("b",), ("b", "c"), ("b", "d")}
    assert found.objects == {(), ("b",)}
    rows, holes = fit(
        pa.array([sample, sample.replace(b"3", b"4"), b"{}"]).cast(pa.string()), found
    )
    assert rows.tolist() == [True, True, False]
    assert [hole.to_pylist() for hole in holes] == [["1", "1"], ["3", "4"]]


@given(records, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]))
def test_a_sample_fits_its_template(record: dict[str, object], separators: tuple[str, str]) -> None:
    sample = json.dumps(record, ensure_ascii=False, separators=separators).encode()
    template = template_of(sample, set())
    if template is None:
        return
    assert len(template.literals) == len(template.holes) + 1
    rows, holes = fit(pa.array([sample]).cast(pa.string()), template)
    if rows[0]:
        inside = [hole[0].as_py().encode() for hole in holes]
        parts = zip(template.literals, [*inside, b""], strict=True)
        assert b"".join(part for pair in parts for part in pair) == sample
    else:
        assert b"\\\\\\" in sample


def pattern_of(template: Template) -> re.Pattern[bytes]:
    """Return what fits by the definition, for holes without quotes."""
    return re.compile(b'([^"]*)'.join(map(re.escape, template.literals)), re.DOTALL)


BASES = [
    b'{"id":1,"s":"x"}', b'{"a": {"b": "y", "c": 2.5}, "d": true}', b'{"n":12345678, "q":null}',
]  # fmt: skip
PATCHES = [b"", b'"', b"1", b"}", b"x", b'"id":', b"{", b", "]


@st.composite
def mutants(draw: st.DrawFn, base: bytes) -> bytes:
    changed = bytearray(base)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(changed)))
        stop = draw(st.integers(at, min(at + 2, len(changed))))
        changed[at:stop] = draw(st.sampled_from(PATCHES))
    return bytes(changed)


@pytest.mark.parametrize("long", [fitting.LONG, 3])
@given(data=st.data(), base=st.sampled_from(BASES))
@settings(max_examples=300, deadline=None)
def test_fit_is_the_definition(long: int, data: st.DataObject, base: bytes) -> None:
    template = template_of(base, set())
    assert template is not None
    texts = [p.decode() for p in data.draw(st.lists(mutants(base), max_size=5))]
    payloads = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    found = [pattern_of(template).fullmatch(text.encode()) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "LONG", long)
        rows, holes = fit(payloads, template)
    assert rows.tolist() == [match is not None for match in found]
    inside = [hole.to_pylist() for hole in holes]
    assert list(zip(*inside, strict=True)) == [
        tuple(group.decode() for group in match.groups()) for match in found if match is not None
    ]
