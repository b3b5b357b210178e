"""What the console makes of a text of SQL (static/text.js): what it names, what it remembers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nodejs import node

TEXT = Path(__file__).parents[3] / "src/reclock/server/http/static/text.js"
OBJECTS = ["a", "accounts", "orders", "Orders", "shop.orders", 'a"b', "late", "sp ace"]


def called(name: str, *calls: list[Any]) -> list[Any]:
    """Call a function of the module, once with each list of arguments."""
    made = f"JSON.stringify({json.dumps(calls)}.map(given => {name}(...given)))"
    script = f"{TEXT.read_text()}\nconsole.log({made});"
    done = node("--input-type=module", "-", input=script)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


SECRETS = [
    "ALTER USER joe PASSWORD 'correct horse'",
    "CREATE USER joe PASSWORD 'x'",
    "CREATE ROLE joe LOGIN ENCRYPTED PASSWORD $$x$$",
    "SELECT 'my pass' || 'word is x', 'passwd'",
    "CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' WITH (kafka.sasl.password = 'x')",
    "CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' WITH (registry.bearer.auth.token = 'x')",
    "CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' WITH (kafka.ssl.key.pem = 'x')",
    "CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' WITH (registry.basic.auth.user.info = 'a:b')",
    "CREATE SOURCE s FROM POSTGRES CONNECTION 'postgresql://joe:hunter2@db/x' PUBLICATION 'p'",
    "-- creds: postgresql://joe:hunter2@db/x\nSELECT 1",
    "/* token abc */ SELECT 1",
    "SELECT * FROM t WHERE url = 'https://joe:hunter2@host'",
    "SELECT 1; ALTER USER a PASSWORD 'b'",
    "COPY t FROM 's3://bucket' WITH (access_key = 'AKIA')",
    "SET x = 'hunter2'",
    "INSERT INTO users VALUES (1, 'ann', 'hunter2')",
    "UPDATE users SET word = 'hunter2'",
    "EXPLAIN CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' WITH (any.thing = 'hunter2')",
    "WITH w AS (SELECT 1) INSERT INTO users SELECT 'hunter2'",
    "SELECT 'AKIAIOSFODNN7EXAMPLEX'",
    "SELECT * FROM hooks WHERE id = '6f1c2a34-9c1b-4c8e-8a57-0c6c3f9d2b11'",
    "SELECT 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.abc'",
    "SELECT E'\\'-----BEGIN RSA'",
    "-- QWxhZGRpbjpvcGVuIHNlc2FtZQ\nSELECT 1",
    "ALTER ROLE joe SET api_key = x",
    "SELECT 'not ended",
    'SELECT "not ended',
    "SELECT 1 /* not ended",
    "SELECT $a$ not ended $b$",
    "do $$ hunter2 $$",
    "hunter 'hunter2'",
]
FREE = [
    "SELECT * FROM orders WHERE region = 'north'", "(SELECT 'it''s', $$a$$)", "SUBSCRIBE orders",
    "SUBSCRIBE (SELECT * FROM orders WHERE region = 'north')", "DROP TABLE orders",
    "-- of today\nSELECT 1 -- done", "CREATE MATERIALIZED VIEW v AS SELECT sum(n) FROM orders",
    "EXPLAIN SELECT * FROM t WHERE a = 'b'", "SHOW timestamp_interval", "TABLE orders;",
    "WITH w AS (SELECT 'x' AS a) SELECT * FROM w", "INSERT INTO t VALUES (1, 2)",
    "SELECT * FROM a AS OF '2026-11-16 12:00:03.123+00'", "BEGIN; DELETE FROM t; COMMIT",
    "SELECT 'this is a sentence with quite a few words in it'", "SELECT $1::int + 20000000000000",
]  # fmt: skip


def test_what_may_have_a_secret_is_not_remembered() -> None:
    found = called("mayRemember", *([text] for text in SECRETS))
    assert [t for t, may in zip(SECRETS, found, strict=True) if may] == []


def test_what_has_none_is() -> None:
    found = called("mayRemember", *([text] for text in FREE))
    assert [t for t, may in zip(FREE, found, strict=True) if not may] == []


NAMED = {
    "SELECT * FROM orders": ["orders"],
    "SELECT orders, accounts.late FROM a": ["a"],  # columns
    "SELECT * FROM ORDERS o JOIN Accounts AS late ON o.a = late.a": ["accounts", "orders"],
    'SELECT * FROM "Orders", "sp ace" AS a, "a""b"': ["Orders", 'a"b', "sp ace"],
    "SELECT orders_of_all, 'FROM orders', $$FROM orders$$ FROM t -- FROM orders": [],
    "SELECT * FROM t /* FROM orders /* late */ accounts */": [],
    "SELECT * FROM public.orders": ["orders"],
    'SELECT * FROM "shop" . orders': ["shop.orders"],
    "SELECT shop.orders.id FROM shop.orders": ["shop.orders"],
    "SELECT orders.accounts FROM orders WHERE late > 1": ["orders"],
    "TABLE late; (TABLE orders)": ["late", "orders"],
    "SELECT E'\\' FROM late ' FROM accounts": ["accounts"],
    "SELECT '\\' FROM accounts, late": ["accounts", "late"],
    "SELECT * FROM (SELECT * FROM orders GROUP BY a, late) t, accounts": ["accounts", "orders"],
    "SELECT * FROM ((orders CROSS JOIN a)) JOIN late USING (accounts)": ["a", "late", "orders"],
    "SELECT * FROM generate_series(1, orders), a ORDER BY 1, late": ["a"],
    "SELECT a IS DISTINCT FROM late, accounts FROM orders": ["orders"],
    "WITH w AS (SELECT * FROM orders) SELECT * FROM w, accounts": ["accounts", "orders"],
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM orders) UNION SELECT a, late FROM accounts": [
        "accounts", "orders",
    ],
    "SELECT * FROM orders AS OF 7, late": ["orders"],
    "SUBSCRIBE TO orders": ["orders"],
    "SUBSCRIBE (SELECT region, orders FROM accounts)": ["accounts"],
    "SUBSCRIBE late WITH (PROGRESS)": ["late"],
    "SELECT * FROM )))(((, orders": [],
    "": [],
}  # fmt: skip


def test_the_objects_that_a_text_reads() -> None:
    found = called("named", *([text, OBJECTS] for text in NAMED))
    wanted = [[name for name in OBJECTS if name in names] for names in NAMED.values()]
    assert dict(zip(NAMED, found, strict=True)) == dict(zip(NAMED, wanted, strict=True))


LIVE = {
    "SUBSCRIBE orders": True, "-- live\n subscribe (SELECT 1);": True, "": False,
    "SELECT 'subscribe'": False, "SUBSCRIBE a; SUBSCRIBE b": False,
}  # fmt: skip


def test_a_subscribe_is_known_by_its_first_word() -> None:
    found = called("isSubscribe", *([text] for text in LIVE))
    assert dict(zip(LIVE, found, strict=True)) == LIVE


BROKEN = ["'", '"', "$", "$$", "$a", "/*", "--", "😀😀 é_1 $1 1e5 ::", "\\"]


def test_pieces_are_all_of_a_text() -> None:
    """Whatever it is: what is between them is space."""
    texts = [*SECRETS, *FREE, *NAMED, *BROKEN]
    for text, pieces in zip(texts, called("pieces", *([t] for t in texts)), strict=True):
        rest = text
        for piece in pieces:
            before, found, rest = rest.partition(piece["text"])
            assert found
            assert not before.strip(), text
        assert not rest.strip(), text
