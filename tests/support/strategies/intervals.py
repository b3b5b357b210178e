"""Random texts and expressions of intervals, for us and for PostgreSQL.

``interval_text`` is mostly an interval in one of PostgreSQL's forms, sometimes nearly one.
``EXPRESSIONS`` are over the columns ``i, j`` (intervals), ``n`` (a double), ``ts, u``
(timestamps) and ``tz``; each has a text in both, or is an error in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.interval import Interval

if TYPE_CHECKING:
    from random import Random

_UNITS: Final = (
    "us", "usec", "microsecond", "microseconds", "ms", "millisecond", "msecs", "second", "sec", "s",
    "min", "mins", "m", "minute", "h", "hr", "hours", "day", "days", "d", "week", "weeks", "w",
    "mon", "mons", "month", "months", "y", "yr", "years", "year", "decade", "decs", "century",
    "cent", "c", "mil", "millennium", "millennia", "quarter", "fortnight", "ago", "at", "on",
)  # fmt: skip
QUALIFIERS: Final = (
    "", "", "", "", "year", "month", "day", "hour", "minute", "second", "year to month",
    "day to hour", "day to minute", "day to second", "hour to minute", "hour to second",
    "minute to second", "second(2)", "(3)", "day to second(0)",
)  # fmt: skip

COLUMNS: Final = (
    ("id", "integer"), ("i", "interval"), ("j", "interval"), ("n", "double precision"),
    ("ts", "timestamp"), ("u", "timestamp"), ("tz", "timestamptz"), ("t", "text"),
)  # fmt: skip
EXPRESSIONS: Final = (
    "i::text", "(-i)::text", "(i + j)::text", "(i - j)::text", "(i * n)::text", "(n * j)::text",
    "(i / (n * n + 1))::text", "(ts + i)::text", "(i + ts)::text", "(ts - i)::text",
    "(tz + j)::text", "(tz - j)::text", "(ts - u)::text", "age(ts, u)::text", "age(u, ts)::text",
    "justify_days(i)::text", "justify_hours(i)::text", "justify_interval(i)::text",
    "justify_interval(i - j)::text", "t::interval::text", "(t::interval * 2)::text",
    "(i = j)::text", "(i < j)::text", "(i <= j)::text", "(i <> j)::text",
    "(i is distinct from j)::text", "(i between j and t::interval)::text",
    "(i in (j, interval '30 days', interval '1 day'))::text", "coalesce(i, j)::text",
    "(case i when j then 'same' when interval '1 mon' then 'month' else 'other' end)",
    "greatest(i, j, interval '0')::text", "least(i, j)::text", "nullif(i, j)::text",
    *(f"cast(extract({f} from i) as double precision)::text" for f in
      ("hour", "minute", "day", "month", "year", "quarter", "decade", "century", "millennium")),
    *(f"(extract({f} from i) = extract({f} from j))::text" for f in ("epoch", "second", "week")),
    *(f"date_trunc('{f}', i)::text" for f in
      ("millennium", "century", "decade", "year", "quarter", "month", "day", "hour", "minute",
       "second", "milliseconds", "microseconds")),
    "make_interval(days => id, secs => n)::text", "make_interval(id, -id, id, id, id, id, n)::text",
    "(array[i, j] = array[j, i])::text", "(i = any(array[j, interval '1 mon']))::text",
    "cast(i as interval hour to minute)::text", "cast(i as interval(1))::text",
    "cast(i as interval year to month)::text", "cast(i as interval year)::text",
    "(ts + i - i)::text", "((ts + i) - ts)::text", "(i || ' ' || j)",
    "(ts + interval '1 mon' > ts + interval '30 days')::text",
)  # fmt: skip
"""Each with a text per row; none fails over ``random_rows``."""


def random_interval(random: Random) -> Interval:
    """Return an interval, often one that equals others without being the same."""
    if random.random() < 0.4:
        choices = ("0", "1 mon", "30 days", "720:00", "-1 mon", "1 day", "24:00", "-30 days")
        from reclock.sql.interval import parse_interval  # noqa: PLC0415

        return parse_interval(random.choice(choices))
    span = random.choice([2, 40, 400])
    micros = random.choice([0, 1_500_000, 86_399_999_999, random.randrange(10**12)])
    return Interval(
        random.randint(-span, span), random.randint(-span, span), random.choice([-1, 1]) * micros
    )


def random_rows(random: Random, count: int) -> list[str]:
    """Return rows for ``COLUMNS``, as SQL reads them."""
    rows = []
    for number in range(count):
        i, j = (
            "NULL" if random.random() < 0.1 else f"interval '{random_interval(random)}'"
            for _ in range(2)
        )
        n = random.choice(["0.5", "-1.5", "3", "0.333", "1e-3", "7.25", "NULL", "100", "-0.1"])
        times = [
            f"{random.randint(1900, 2100)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
            f" {random.randrange(24):02}:{random.randrange(60):02}:00.{random.randrange(10**6):06}"
            if random.random() < 0.6
            else random.choice(["2024-01-31 12:00", "2024-02-29 00:00", "2023-12-31 23:59:59.5"])
            for _ in range(3)
        ]
        text = str(random_interval(random))
        rows.append(
            f"({number}, {i}, {j}, {n}, timestamp '{times[0]}', timestamp '{times[1]}',"
            f" timestamptz '{times[2]}+00', '{text}')"
        )
    return rows


def interval_text(random: Random) -> str:
    """Return a text that is mostly an interval."""
    if random.random() < 0.2:
        return _iso(random)
    parts = []
    for _ in range(random.choice([1, 1, 2, 2, 3, 4])):
        kind = random.random()
        if kind < 0.6:
            parts.append(_number(random) + random.choice(["", " "]) + random.choice(_UNITS))
        elif kind < 0.8:
            parts.append(_clock(random))
        elif kind < 0.9:
            sign = random.choice(["", "-", "+"])
            parts.append(f"{sign}{random.randrange(20)}-{random.randrange(14)}")
        else:
            parts.append(_number(random))
    text = random.choice([" ", " ", "  ", ", ", "@ "]).join(parts)
    if random.random() < 0.1:
        text += " ago"
    return text.upper() if random.random() < 0.05 else text


def _number(random: Random) -> str:
    sign = random.choice(["", "", "", "-", "+", "- "])
    kind = random.random()
    if kind < 0.6:
        edges = [0, 1, 2, 12, 30, 59, 60, 100, random.randrange(10**6), 2**31 - 1, 2**31, 178956970]
        return f"{sign}{random.choice(edges)}"
    if kind < 0.9:
        digits = random.choice(["5", "25", "1", "999999", "1234567", "333333333", "", "0"])
        return f"{sign}{random.randrange(100)}.{digits}"
    return f"{sign}.{random.randrange(1000)}"


def _clock(random: Random) -> str:
    hour, minute, second = random.randrange(30), random.randrange(62), random.randrange(62)
    forms = [
        f"{hour}:{minute}", f"{hour}:{minute:02}:{second:02}",
        f"{hour}:{minute}:{second}.{random.randrange(10**7)}", f"{hour}:{minute}.5", "1:2:",
        "2562047788:0:54.775807",
    ]  # fmt: skip
    return random.choice(["", "", "-", "+"]) + random.choice(forms)


def _iso(random: Random) -> str:
    def number() -> str:
        whole, part = random.randrange(100), random.randrange(1000)
        return random.choice(["", "", "-"]) + random.choice([f"{whole}", f"{whole}.{part}", "1e3"])

    if random.random() < 0.6:
        date = "".join(number() + unit for unit in "YMWD" if random.random() < 0.5)
        time = "".join(number() + unit for unit in "HMS" if random.random() < 0.5)
        return f"P{date}" + (f"T{time}" if random.random() < 0.8 else "")
    date = random.choice(["0001-02-03", f"{number()}-{number()}-{number()}", "00010203", number()])
    time = random.choice(["", "T04:05:06.7", "T040506", f"T{number()}:{number()}", f"T{number()}"])
    return f"P{date}{time}"
