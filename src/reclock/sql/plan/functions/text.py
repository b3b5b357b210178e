"""Strings. Positions count characters from 1; NULL in, NULL out, except ``concat``."""

from __future__ import annotations

from reclock.sql.plan.functions.length import MAX_BYTES, SPLIT, TOO_LONG, bytes_of, too_long, within
from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.functions.patterns import ANY
from reclock.sql.types import BOOLEAN, BYTEA, INTEGER, TEXT, Array

_NEGATIVE = Failure("22011", "negative substring length not allowed", "{2} < 0")
_FIELD = Failure("22023", "field position must not be zero", "{2} = 0")
_CHARACTER = Failure("54000", "requested character is not valid for encoding")
_END = "LIKE pattern must not end with escape character"
_ODD = "(char_length({{0}}) - char_length(trim(TRAILING {} FROM {{0}}))) % 2 = 1"
_UNFINISHED = Failure("22025", _END, _ODD.format(r"'\\'"))
_UNFINISHED_BY = Failure("22025", _END, "{1} <> '' AND " + _ODD.format("{1}"))
_S2 = (TEXT, TEXT)
_FOUND = "(octet_length({0}) - octet_length(replace({0}, {1}, ''))) div octet_length({1})"
_REPLACED = f"{bytes_of('{0}')} + {_FOUND} * (octet_length({{2}}) - octet_length({{1}}))"
_JOINED = "{bytes} + {count} * " + bytes_of("{0}")
_PADDED = "4L * {1}"

_INITIALS = (
    r"array_join(transform(regexp_extract_all({0},"
    r" '([\\p{IsAlphabetic}\\p{Nd}]+|[^\\p{IsAlphabetic}\\p{Nd}]+)', 1),"
    r" __w -> concat(upper(left(__w, 1)), lower(substring(__w, 2)))), '')"
)
"""A word is of letters and digits; Spark's ends at blanks only."""

_PIECES = (
    r"CASE WHEN {0} = '' AND {1} IS NOT NULL THEN CAST(array() AS ARRAY<STRING>)"
    r" WHEN {1} = '' THEN array({0}) ELSE"
    r" split({0}, concat('\\Q', replace({1}, '\\E', '\\E\\\\E\\Q'), '\\E'), -1) END"
)

SHORT = {
    "||": Overload("||", _S2, TEXT, "concat({*})", variadic=True),
    "concat": Overload(
        "concat", (ANY,), TEXT, "concat_ws('', {*})", variadic=True, never_null=True
    ),
    "concat_ws": Overload("concat_ws", (TEXT, ANY), TEXT, "concat_ws({*})", variadic=True),
}
"""For texts of which all but one are short (``length.adds_little``)."""

OVERLOADS = (
    Overload("||", _S2, TEXT, within("{bytes}", "concat({*})"), (TOO_LONG,), variadic=True),
    Overload("concat", (ANY,), TEXT, within("{bytes}", "concat_ws('', {*})"),
             (too_long("{value} IS NULL"),), variadic=True, never_null=True),
    Overload("concat_ws", (TEXT, ANY), TEXT, within(_JOINED, "concat_ws({*})"),
             (too_long("{value} IS NULL AND {0} IS NOT NULL"),), variadic=True),
    Overload("length", (TEXT,), INTEGER, "char_length({0})"),
    Overload("char_length", (TEXT,), INTEGER, "char_length({0})"),
    Overload("character_length", (TEXT,), INTEGER, "char_length({0})"),
    Overload("octet_length", (TEXT,), INTEGER, "octet_length({0})"),
    Overload("octet_length", (BYTEA,), INTEGER, "octet_length({0})"),
    Overload("length", (BYTEA,), INTEGER, "octet_length({0})"),
    Overload("lower", (TEXT,), TEXT, "lower({0})"),
    Overload("upper", (TEXT,), TEXT, "upper({0})"),
    Overload("initcap", (TEXT,), TEXT, _INITIALS),
    Overload("reverse", (TEXT,), TEXT, "reverse({0})"),
    Overload("ascii", (TEXT,), INTEGER, "ascii({0})"),
    Overload("chr", (INTEGER,), TEXT,
             "CASE WHEN {0} BETWEEN 1 AND 55295 OR {0} BETWEEN 57344 AND 1114111"
             " THEN decode(unhex(lpad(hex({0}), 8, '0')), 'UTF-32') END",
             (Failure("22023", "character number must be positive", "{0} < 0"), _CHARACTER)),
    Overload("md5", (TEXT,), TEXT, "md5(CAST({0} AS BINARY))"),
    Overload("md5", (BYTEA,), TEXT, "md5({0})"),
    Overload("sha256", (BYTEA,), BYTEA, "unhex(sha2({0}, 256))"),
    Overload("repeat", (TEXT, INTEGER), TEXT,
             within("bigint(octet_length({0})) * {1}", "repeat({0}, {1})"), (TOO_LONG,)),
    Overload("replace", (TEXT, TEXT, TEXT), TEXT,
             "CASE WHEN {1} = '' THEN {0} ELSE "
             + within(f"bigint(octet_length({{0}})) * octet_length({{2}}) <= {MAX_BYTES}"
                      f" OR {_REPLACED}", "replace({0}, {1}, {2})")
             + " END", (TOO_LONG,), guarded=True),
    Overload("translate", (TEXT, TEXT, TEXT), TEXT, "translate({0}, {1}, {2})"),
    Overload("left", (TEXT, INTEGER), TEXT,
             "CASE WHEN {1} >= 0 THEN left({0}, {1})"
             " ELSE left({0}, greatest(char_length({0}) + {1}, 0)) END", guarded=True),
    Overload("right", (TEXT, INTEGER), TEXT,
             "CASE WHEN {1} >= 0 THEN right({0}, {1})"
             " ELSE right({0}, greatest(char_length({0}) + {1}, 0)) END", guarded=True),
    Overload("lpad", (TEXT, INTEGER), TEXT, within(_PADDED, "lpad({0}, {1}, ' ')"),
             (TOO_LONG,)),
    Overload("lpad", (TEXT, INTEGER, TEXT), TEXT, within(_PADDED, "lpad({0}, {1}, {2})"),
             (TOO_LONG,)),
    Overload("rpad", (TEXT, INTEGER), TEXT, within(_PADDED, "rpad({0}, {1}, ' ')"),
             (TOO_LONG,)),
    Overload("rpad", (TEXT, INTEGER, TEXT), TEXT, within(_PADDED, "rpad({0}, {1}, {2})"),
             (TOO_LONG,)),
    Overload("btrim", (TEXT,), TEXT, "trim({0})"),
    Overload("ltrim", (TEXT,), TEXT, "ltrim({0})"),
    Overload("rtrim", (TEXT,), TEXT, "rtrim({0})"),
    Overload("btrim", _S2, TEXT, "trim(BOTH {1} FROM {0})"),
    Overload("ltrim", _S2, TEXT, "trim(LEADING {1} FROM {0})"),
    Overload("rtrim", _S2, TEXT, "trim(TRAILING {1} FROM {0})"),
    Overload("strpos", _S2, INTEGER, "instr({0}, {1})"),
    Overload("starts_with", _S2, BOOLEAN, "startswith({0}, {1})"),
    Overload("substring", (TEXT, INTEGER), TEXT, "substring({0}, greatest({1}, 1))",
             guarded=True),
    Overload("substring", (TEXT, INTEGER, INTEGER), TEXT,
             "substring({0}, greatest({1}, 1),"
             " CAST(least(greatest(CAST({1} AS BIGINT) + {2} - greatest({1}, 1), 0), 2147483647)"
             " AS INT))", (_NEGATIVE,), guarded=True),
    Overload("split_part", (TEXT, TEXT, INTEGER), TEXT,
             "CASE WHEN {2} = 0 THEN NULL"
             " WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END"
             " ELSE split_part({0}, {1}, {2}) END", (_FIELD,), guarded=True),
    Overload("like", _S2, BOOLEAN, "({0} LIKE {1})"),
    Overload("ilike", _S2, BOOLEAN, "({0} ILIKE {1})"),
    Overload("like pattern", (TEXT,), TEXT,
             r"regexp_replace({0}, '(?s)(\\\\[%_\\\\])|\\\\(.)|\\\\\\z', '$1$2')", (_UNFINISHED,)),
    Overload("like escape", _S2, TEXT,
             r"CASE WHEN {1} = '' THEN replace({0}, '\\', '\\\\') ELSE"
             r" regexp_replace({0}, concat('(?s)\\Q', {1}, '\\E(.)|(\\\\)'), '\\\\$1$2')"
             " END", (_UNFINISHED_BY,)),
    Overload("~", _S2, BOOLEAN, "rlike({0}, {1})"),
    Overload("~*", _S2, BOOLEAN, "rlike({0}, concat('(?iu)', {1}))"),
    Overload("string_to_array", _S2, Array(TEXT),
             within(SPLIT, _PIECES), (TOO_LONG,)),
    Overload("encode", (BYTEA, TEXT), TEXT,
             "CASE {1} WHEN 'hex' THEN lower(hex({0})) WHEN 'base64' THEN"
             " replace(base64({0}), '\\r', '') END",
             (Failure("22023", "unrecognized encoding"),)),
    Overload("to_hex", (INTEGER,), TEXT, "lower(right(hex({0}), 8))"),
)  # fmt: skip

SYNONYMS = {
    "substr": "substring",
    "position": "strpos",
    "trim": "btrim",
    "char": "chr",
    "ceiling": "ceil",
    "pow": "power",
}
