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
from reclock.connectors.format.template import BARE, QUOTED, WHOLE, Template, template_of
from reclock.sql.types import BIGINT, JSON, TEXT, Array, Record

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
        b"", b"{", b"[1]", b"1", b"{}", b'{"a": null}', b'{"a": {}}',
        b'{"a": 1, "a": 2}', b'{"a": {"b": 1}, "a": 2}', b'{"\\u0061": 1}', b'{"a": "\xff"}',
        b'{"a": {"b": 1, "b": 2}}', b'{"a": 1, "z": 1, "z": 2}', b'{"z": {"n": {"n": 1}}, "z": 0}',
        b'{"a": [1], "a": 0}',
    ],
)  # fmt: skip
def test_what_has_no_template(sample: bytes) -> None:
    assert template_of(sample, {("a",): TEXT, ("a", "b"): TEXT}) is None


def test_literals_holes_and_objects() -> None:
    sample = b' {"a" : -1.5e3 ,\n"b":{"c":"x\\"y","d":{}, "e":null},"f":true} '
    found = template_of(sample, {})
    assert found is not None
    assert found.literals == (
        b' {"a" : ', b' ,\n"b":{"c":"', b'","d":{}, "e":null},"f":', b"} ",
    )  # fmt: skip
    assert found.holes == ((("a",), BARE), (("b", "c"), QUOTED), (("f",), BARE))
    assert found.objects == {(), ("b",), ("b", "d")}
    assert found.paths == {("a",), ("b",), ("b", "c"), ("b", "d"), ("b", "e"), ("f",)}


def test_whole_holes_and_objects_that_nobody_wants() -> None:
    sample = (
        b'{"s": {"x": [{"y": "\\""}], "z": 1}, "a": [1], "t": [], "b": {"j": {"k": 2}, "d": "x"}}'
    )
    inner = Record((("j", JSON), ("d", TEXT)))
    wanted = {("a",): Array(BIGINT), ("b",): inner, ("b", "j"): JSON, ("b", "d"): TEXT}
    found = template_of(sample, wanted)
    assert found is not None
    assert found.literals == (
        b'{"s": {"x": [{"y": "\\""}], "z": 1}, "a": ', b', "t": ', b', "b": {"j": ',
        b', "d": "', b'"}}',
    )  # fmt: skip
    assert found.holes == (
        (("a",), WHOLE), (("t",), WHOLE), (("b", "j"), WHOLE), (("b", "d"), QUOTED),
    )  # fmt: skip
    assert found.paths == {("s",), ("a",), ("t",), ("b",), ("b", "j"), ("b", "d")}
    assert found.objects == {(), ("b",)}
    other = sample.replace(b"[1]", b'["a", {"b": 1}]').replace(b'{"k": 2}', b"3")
    rows, holes = fit(pa.array([sample, other, b"{}"]).cast(pa.string()), found)
    assert rows.tolist() == [True, True, False]
    assert [hole.to_pylist() for hole in holes] == [
        ["[1]", '["a", {"b": 1}]'], ["[]", "[]"], ['{"k": 2}', "3"], ["x", "x"],
    ]  # fmt: skip


@given(records, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]))
def test_a_sample_fits_its_template(record: dict[str, object], separators: tuple[str, str]) -> None:
    sample = json.dumps(record, ensure_ascii=False, separators=separators).encode()
    template = template_of(sample, {})
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
    """Return what fits: no quotes in holes, and whole ones as short as they can be."""
    inside = {QUOTED: b'([^"]*)', BARE: b'([^"]*)', WHOLE: b"(.*?)"}
    literals = [re.escape(literal) for literal in template.literals]
    holes = [inside[hole.form] for hole in template.holes]
    parts = zip(literals, [*holes, b""], strict=True)
    return re.compile(b"".join(part for pair in parts for part in pair), re.DOTALL)


WANTED = {("j",): JSON, ("k",): JSON}
BASES = [
    b'{"id":1,"s":"x"}', b'{"a": {"b": "y", "c": 2.5}, "d": true}', b'{"n":12345678, "q":null}',
    b'{"id":1,"j":[2]}', b'{"j":[2],"s":"x"}', b'{"id":1,"j":[2],"k":[3],"s":"y"}',
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
    template = template_of(base, WANTED)
    assert template is not None
    texts = [p.decode() for p in data.draw(st.lists(mutants(base), max_size=5))]
    payloads = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    found = [pattern_of(template).fullmatch(text.encode()) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "LONG", long)
        rows, holes = fit(payloads, template)
    inside = iter(zip(*(hole.to_pylist() for hole in holes), strict=True))
    for text, fits, match in zip(texts, rows, found, strict=True):
        if fits:
            parts = zip(template.literals, [*next(inside), ""], strict=True)
            made = b"".join(literal + hole.encode() for literal, hole in parts)
            assert made == text.encode()
            assert match is not None
        elif match is not None:  # a literal is in a whole hole, or a whole one has a quote
            assert any(hole.form == WHOLE for hole in template.holes)
