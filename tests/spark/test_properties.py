"""Files of settings are read as Java reads them, and read back as they were written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reclock.spark.properties import parsed, written

NAMES = st.text("abc.=: #!\\\tü", min_size=1, max_size=6)
VALUES = st.text("abc.=: #!\\\n\r\tü", max_size=8).map(str.strip)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_written_is_read(settings):
    assert parsed(written(settings)) == settings


LINES = st.lists(st.text("ab=:# !\\\t\f\n\rtu0041", max_size=12), max_size=5)


@pytest.mark.spark
@given(LINES)
@example(["\\", "#"])
@example(["a\\ b = c", "spark.master local[2]", "x", "  ! no", "y\\", "  z: 1 "])
def test_text_is_read_as_java_reads_it(spark, lines):
    text = "\n".join(lines)
    if "\\u" in text:  # half an escape is an error in Java
        text = text.replace("\\u", "\\u0041")
    jvm = spark.session.sparkContext._jvm
    theirs = jvm.java.util.Properties()
    theirs.load(jvm.java.io.StringReader(text))
    names = [str(name) for name in theirs.stringPropertyNames()]
    found = {name: value for name, value in parsed(text).items() if name}  # no name is no setting
    assert found == {name: str(theirs.getProperty(name)).strip() for name in names if name}
