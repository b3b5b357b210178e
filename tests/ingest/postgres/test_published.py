"""What a publication stops sending is noticed before anything of it can be seen.

The log does not say so: what is compared is that no bound time shows a transaction in part.
"""

from __future__ import annotations

import threading

import pytest

from reclock.connectors.postgres import published
from reclock.connectors.postgres.published import Marks
from reclock.connectors.postgres.table import Table
from reclock.errors import Error, NewerFormat

pytestmark = pytest.mark.postgres


@pytest.fixture
def bank(upstream):
    upstream("CREATE TABLE accounts (id INT PRIMARY KEY, a INT, n INT)")
    upstream("CREATE TABLE notes (id INT PRIMARY KEY, total INT)")
    upstream("INSERT INTO accounts VALUES (1, 0, 0); INSERT INTO notes VALUES (1, 0)")
    upstream("CREATE PUBLICATION p FOR TABLE accounts, notes")
    return upstream


@pytest.fixture
def db(bank, opener):
    return follow(bank, opener)


def follow(bank, opener):
    db = opener()
    db.execute(f"CREATE SOURCE s {bank.source()} WITH (RETAIN HISTORY FOR '1 h')")
    tick(db, opener)
    return db


def tick(db, opener, times=1):
    for _ in range(times):
        opener.clock.advance(1_000)  # far less than a beat
        db.tick()


MOVE = "BEGIN; UPDATE accounts SET n = n + 1; UPDATE notes SET total = total + 1; COMMIT"


def whole(db):
    """Every bound time shows the same in both tables."""
    times = db.execute('SELECT timestamp FROM reclock.bindings WHERE "offset" > 0').rows
    for (at,) in times:
        both = [
            db.execute(f"SELECT {column} FROM {table} AS OF {at}").rows
            for table, column in (("accounts", "n"), ("notes", "total"))
        ]
        assert both[0] == both[1], at
    return times


def failed(db, opener, said):
    tick(db, opener, 2)
    assert db.execute("SELECT state FROM reclock.source_status").rows == [("failed",)]
    with pytest.raises(Error, match=said) as caught:
        db.execute("SELECT * FROM accounts")
    codes = {"has no table": "42P01", 'column "': "42703", "": "55000"}
    assert caught.value.code == next(c for text, c in codes.items() if text in str(caught.value))
    return whole(db)


LOSSES = [
    ("ALTER PUBLICATION p SET (publish = 'insert')", "", "leaves out updates"),
    ("ALTER PUBLICATION p SET (publish = 'insert')",
     "ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate')", "was changed"),
    ("ALTER PUBLICATION p DROP TABLE accounts", "", "has no table public.accounts"),
    ("ALTER PUBLICATION p DROP TABLE accounts", "ALTER PUBLICATION p ADD TABLE accounts",
     "was changed for table public.accounts"),
    ("ALTER PUBLICATION p SET TABLE accounts WHERE (id > 9), notes", "", "was changed for table"),
    ("ALTER PUBLICATION p SET TABLE accounts (id, a), notes", "",
     'was changed for table|column "n" of table public.accounts was dropped'),
    ("DROP PUBLICATION p", "CREATE PUBLICATION p FOR TABLE accounts, notes", "was changed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "away"), [*((loss, False) for loss in LOSSES), *((loss, True) for loss in LOSSES[1:4])]
)
def test_what_is_not_sent_is_never_shown_in_part(bank, db, opener, loss, away):
    loss, back, said = loss
    bank(MOVE)
    tick(db, opener)
    if away:
        opener.crash(db)
    for sql in (loss, MOVE, back, MOVE):
        if sql:
            bank(sql)
    times = failed(opener() if away else db, opener, said)
    assert len(times) == 2


def test_what_is_whole_before_a_change_is_bound(bank, db, opener):
    bank(MOVE)
    intake = db._core.intakes[db._core.world.catalog.find(("s",)).id]
    while intake.pull():
        pass
    bank("ALTER PUBLICATION p DROP TABLE accounts")
    bank(MOVE)
    assert len(failed(db, opener, "has no table")) == 2
    last = max(at for (at,) in whole(db))
    assert db.execute(f"SELECT n FROM accounts AS OF {last}").rows == [(1,)]


def test_tables_that_come_to_the_publication_change_nothing(bank, db, opener):
    bank("CREATE TABLE more (id INT PRIMARY KEY); CREATE TABLE other (id INT PRIMARY KEY)")
    bank("ALTER PUBLICATION p ADD TABLE more")
    bank(MOVE)
    bank("ALTER PUBLICATION p SET TABLE accounts, notes, other")
    bank(MOVE)
    tick(db, opener)
    assert db.execute("SELECT n FROM accounts").rows == [(2,)]
    bank("GRANT SELECT ON accounts TO public; ALTER TABLE accounts ALTER n SET STATISTICS 10")
    bank("SELECT * FROM pg_publication FOR UPDATE; SELECT * FROM pg_publication_rel FOR UPDATE")
    bank("ANALYZE accounts")
    bank("VACUUM FULL accounts")
    bank(MOVE)
    db = opener.reopened(db)
    tick(db, opener, 2)
    assert db.execute("SELECT n FROM accounts").rows == [(3,)]


def test_tables_of_a_schema_are_published_by_it(bank, opener):
    bank("DROP PUBLICATION p; CREATE PUBLICATION p FOR TABLES IN SCHEMA public")
    db = follow(bank, opener)
    bank(MOVE)
    tick(db, opener)
    assert db.execute("SELECT n FROM accounts").rows == [(1,)]
    bank("CREATE SCHEMA elsewhere; ALTER TABLE accounts SET SCHEMA elsewhere")
    bank("SET search_path = public, elsewhere")
    bank(MOVE)
    failed(db, opener, "has no table public.accounts")


def test_a_partition_that_is_detached_is_published_no_more(upstream, opener):
    upstream("CREATE TABLE sales (id INT PRIMARY KEY) PARTITION BY RANGE (id)")
    upstream("CREATE TABLE accounts PARTITION OF sales FOR VALUES FROM (0) TO (10)")
    upstream("CREATE PUBLICATION p FOR TABLE sales")
    db = follow(upstream, opener)
    upstream("ALTER TABLE sales DETACH PARTITION accounts; INSERT INTO accounts VALUES (1);"
             "ALTER TABLE sales ATTACH PARTITION accounts FOR VALUES FROM (0) TO (10)")  # fmt: skip
    tick(db, opener, 2)
    with pytest.raises(Error, match="was changed for table public"):
        db.execute("SELECT * FROM accounts")


def test_a_change_under_way_is_waited_for(bank, db, opener, monkeypatch):
    monkeypatch.setattr(published, "PATIENCE", 0.05)
    other = bank.connect()
    other.autocommit = False
    with other.cursor() as cursor:
        cursor.execute("SAVEPOINT a; ALTER PUBLICATION p SET (publish = 'insert')")
        bank(MOVE)
        tick(db, opener)
        state, detail = db.execute("SELECT state, detail FROM reclock.source_status").rows[0]
        assert state == "stalled"
        assert 'publication "p" is being changed' in detail
        assert len(whole(db)) == 1
    other.rollback()
    tick(db, opener, 2)
    assert db.execute("SELECT n FROM accounts").rows == [(1,)]
    other.close()


def test_what_is_in_the_log_and_not_visible_yet_is_waited_for(bank, db, opener, monkeypatch):
    """A commit that waits for a synchronous standby is in the log, and no look can see it."""
    monkeypatch.setattr(published, "PATIENCE", 0.05)
    bank("SET synchronous_commit = local")
    other = bank.connect()

    def alter():
        with other.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE accounts DROP COLUMN n; ALTER TABLE accounts ADD COLUMN n INT;"
                "UPDATE accounts SET n = 7"
            )

    bank("ALTER SYSTEM SET synchronous_standby_names = 'away'")
    bank("SELECT pg_reload_conf()")
    thread = threading.Thread(target=alter)
    try:
        while bank("SHOW synchronous_standby_names") != [("away",)]:
            pass
        thread.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while not bank(waiting):
            pass
        tick(db, opener)
        assert db.execute("SELECT state FROM reclock.source_status").rows == [("stalled",)]
        assert len(whole(db)) == 1
    finally:
        bank("ALTER SYSTEM RESET synchronous_standby_names")
        bank("SELECT pg_reload_conf()")
        thread.join()
    failed(db, opener, 'column "n" .* another column')
    other.close()


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE accounts DROP COLUMN n; ALTER TABLE accounts ADD COLUMN n INT DEFAULT 5",
        "ALTER TABLE accounts DROP COLUMN a; ALTER TABLE accounts ADD COLUMN a INT DEFAULT 5",
        "ALTER TABLE accounts RENAME a TO x; ALTER TABLE accounts RENAME n TO a; "
        "ALTER TABLE accounts RENAME x TO n",
    ],
)
def test_a_name_that_another_column_has_now_is_noticed(bank, db, opener, change, away):
    bank(MOVE)
    tick(db, opener)
    if away:
        opener.crash(db)
    bank(change)
    bank("UPDATE accounts SET id = id + 10")
    db = opener() if away else db
    failed(db, opener, "is another column of that name now")
    last = max(at for (at,) in whole(db))
    assert db.execute(f"SELECT * FROM accounts AS OF {last}").rows == [(1, 0, 1)]


def test_names_that_were_others_for_a_while_are_noticed(bank, db, opener):
    swap = ("ALTER TABLE accounts RENAME a TO x; ALTER TABLE accounts RENAME n TO a; "
            "ALTER TABLE accounts RENAME x TO n;")  # fmt: skip
    bank(swap)
    bank("UPDATE accounts SET n = 5")
    bank(swap)
    failed(db, opener, "is another column of that name now")


def test_a_source_that_was_made_before_there_were_marks_is_watched(bank, opener, monkeypatch):
    monkeypatch.setattr(Marks, "record", lambda _: None)
    before = Table.record

    def old(self):
        record = before(self)
        del record["v"]
        for column in record["columns"]:
            del column["number"]
        return record

    monkeypatch.setattr(Table, "record", old)
    db = follow(bank, opener)
    bank(MOVE)
    db = opener.reopened(db)
    tick(db, opener)
    assert db.execute("SELECT n FROM accounts").rows == [(1,)]
    bank("ALTER PUBLICATION p DROP TABLE accounts; ALTER PUBLICATION p ADD TABLE accounts")
    failed(db, opener, "was changed for table public.accounts")


def test_facts_of_a_later_version_are_refused():
    with pytest.raises(NewerFormat):
        Marks.of({"v": 2, "publication": "", "tables": {}})
    with pytest.raises(NewerFormat):
        Table.of({"v": 3})
