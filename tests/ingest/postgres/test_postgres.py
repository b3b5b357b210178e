"""Tables of a real PostgreSQL as relations: one slot, one remap, whole transactions."""

from __future__ import annotations

from decimal import Decimal

import psycopg2
import pytest

from reclock.errors import Error, StatementError
from reclock.time.timestamp import Lsn

pytestmark = pytest.mark.postgres


@pytest.fixture
def bank(upstream):
    upstream("CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner TEXT, balance NUMERIC(12,2))")
    upstream("CREATE TABLE transfers (id INT PRIMARY KEY, src BIGINT, dst BIGINT, amount INT)")
    upstream("CREATE TABLE notes (t TEXT, n INT)")
    upstream("ALTER TABLE notes REPLICA IDENTITY FULL")
    upstream("INSERT INTO accounts SELECT i, 'o' || i, 100 FROM generate_series(1, 10) i")
    upstream("INSERT INTO notes VALUES ('a', 1), ('a', 1)")
    upstream("CREATE PUBLICATION p FOR TABLE accounts, transfers, notes")
    return upstream


@pytest.fixture
def db(bank, opener):
    db = opener()
    db.execute(f"CREATE SOURCE bank {bank.source()} WITH (RETAIN HISTORY FOR '1 h')")
    return db


def tick(db, opener):
    opener.clock.advance(1_000)
    db.tick()


def test_tables_are_copied_at_one_time(db, opener):
    tick(db, opener)
    assert db.execute("SELECT count(*), sum(balance) FROM accounts").rows == [(10, Decimal(1000))]
    assert db.execute("SELECT * FROM notes").rows == [("a", 1), ("a", 1)]
    assert db.execute("SELECT * FROM transfers").rows == []
    times = db.execute('SELECT timestamp FROM reclock.bindings WHERE "offset" > 0').rows
    assert times == [(2_000,)]


def test_a_first_read_waits_for_the_copy(db):
    assert db.execute("SELECT count(*) FROM accounts").rows == [(10,)]


def test_a_transaction_is_whole_over_tables(db, bank, opener):
    tick(db, opener)
    bank("BEGIN; UPDATE accounts SET balance = balance - 10 WHERE id = 1; "
         "UPDATE accounts SET balance = balance + 10 WHERE id = 2; "
         "INSERT INTO transfers VALUES (1, 1, 2, 10); COMMIT")  # fmt: skip
    tick(db, opener)
    at = db.execute('SELECT timestamp FROM reclock.bindings WHERE "offset" > 0').rows
    assert at == [(2_000,), (3_000,)]
    for time, moved in ((2_000, 0), (3_000, 10)):
        balances = db.execute(f"SELECT balance FROM accounts WHERE id <= 2 AS OF {time}").rows
        assert sorted(balances) == [(Decimal(100 - moved),), (Decimal(100 + moved),)]
        amounts = db.execute(f"SELECT coalesce(sum(amount), 0) FROM transfers AS OF {time}").rows
        assert amounts == [(moved,)]


def test_rows_change_in_every_way(db, bank, opener):
    tick(db, opener)
    bank("UPDATE accounts SET id = 100 WHERE id = 3")
    bank("DELETE FROM accounts WHERE id BETWEEN 4 AND 10")
    bank("DELETE FROM notes WHERE ctid = '(0,1)'")
    bank("UPDATE notes SET n = 2")
    bank("BEGIN; INSERT INTO accounts VALUES (50, 'x', 1);"
         "UPDATE accounts SET id = 51 WHERE id = 50;"
         "UPDATE accounts SET balance = 2 WHERE id = 51; COMMIT")  # fmt: skip
    bank(
        "BEGIN; INSERT INTO accounts VALUES (60, 'x', 1);DELETE FROM accounts WHERE id = 60; COMMIT"
    )
    bank("BEGIN; SAVEPOINT a; INSERT INTO accounts VALUES (70, 'x', 1); ROLLBACK TO a; "
         "SAVEPOINT b; INSERT INTO accounts VALUES (71, 'y', 1); RELEASE b; COMMIT")  # fmt: skip
    bank("BEGIN; INSERT INTO accounts VALUES (80, 'x', 1); ROLLBACK")
    bank("BEGIN; COMMIT")
    tick(db, opener)
    rows = sorted(db.execute("SELECT id, balance FROM accounts").rows)
    assert rows == sorted(bank("SELECT id, balance FROM accounts"))
    assert db.execute("SELECT * FROM notes").rows == [("a", 2)]


def test_truncation_takes_every_row(db, bank, opener):
    tick(db, opener)
    bank("INSERT INTO notes VALUES ('b', 1)")
    tick(db, opener)
    bank("BEGIN; INSERT INTO accounts VALUES (50, 'x', 1); INSERT INTO notes VALUES ('c', 1);"
         "TRUNCATE accounts, notes; INSERT INTO accounts VALUES (1, 'n', 5);"
         "INSERT INTO notes VALUES ('d', 1); COMMIT")  # fmt: skip
    bank("INSERT INTO accounts VALUES (2, 'm', 6)")
    tick(db, opener)
    assert sorted(db.execute("SELECT * FROM accounts").rows) == [
        (1, "n", Decimal(5)), (2, "m", Decimal(6)),
    ]  # fmt: skip
    assert db.execute("SELECT * FROM notes").rows == [("d", 1)]
    bank("TRUNCATE notes")
    bank("INSERT INTO notes VALUES ('e', 1)")
    bank("TRUNCATE notes")
    tick(db, opener)
    assert db.execute("SELECT * FROM notes").rows == []
    assert db.execute("SELECT count(*) FROM notes AS OF 3000").rows == [(3,)]


def test_values_out_of_line_are_taken_from_the_rows_here(bank, opener):
    bank("CREATE TABLE docs (id INT PRIMARY KEY, body TEXT, n INT)")
    bank("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    bank("INSERT INTO docs SELECT i, repeat(chr(96 + i), 9000), 0 FROM generate_series(1, 5) i")
    bank("ALTER PUBLICATION p ADD TABLE docs")
    db = opener()
    db.execute(f"CREATE SOURCE s {bank.source('FOR TABLES (docs)')}")
    tick(db, opener)
    bank("UPDATE docs SET n = 1 WHERE id = 1")  # from the rows before
    bank("UPDATE docs SET id = 20 WHERE id = 2")  # of another key
    bank("UPDATE docs SET n = 2 WHERE id = 20")  # of a record before, which took it from there
    bank(
        "BEGIN; INSERT INTO docs VALUES (30, repeat('z', 9000), 0); "
        "UPDATE docs SET n = 7 WHERE id = 30; UPDATE docs SET id = 31 WHERE id = 30; COMMIT"
    )
    bank("BEGIN; UPDATE docs SET body = repeat('y', 8000) WHERE id = 3; "
         "UPDATE docs SET n = 9 WHERE id = 3; COMMIT")  # fmt: skip
    tick(db, opener)
    bank("UPDATE docs SET n = n + 1")
    tick(db, opener)
    rows = sorted(db.execute("SELECT id, body, n FROM docs").rows)
    assert rows == sorted(bank("SELECT id, body, n FROM docs"))
    assert db.execute("SELECT * FROM reclock.errors").rows == []


def test_a_key_of_an_index_is_the_identity(bank, opener):
    bank("CREATE TABLE tags (id INT PRIMARY KEY, name TEXT NOT NULL, n INT)")
    bank("CREATE UNIQUE INDEX tags_name ON tags (name)")
    bank("ALTER TABLE tags REPLICA IDENTITY USING INDEX tags_name")
    bank("INSERT INTO tags VALUES (1, 'a', 1), (2, 'b', 2)")
    bank("ALTER PUBLICATION p ADD TABLE tags")
    db = opener()
    db.execute(f"CREATE SOURCE s {bank.source('FOR TABLES (tags AS labels)')}")
    tick(db, opener)
    bank("UPDATE tags SET name = 'c' WHERE id = 1; DELETE FROM tags WHERE id = 2")
    bank("UPDATE tags SET id = 5")
    tick(db, opener)
    assert db.execute("SELECT * FROM labels").rows == [(5, "c", 1)]


def test_a_restart_goes_on(db, bank, opener):
    tick(db, opener)
    bank("INSERT INTO transfers VALUES (1, 1, 2, 10)")
    tick(db, opener)
    before = db.execute('SELECT timestamp, "offset" FROM reclock.bindings').rows
    bank("INSERT INTO transfers VALUES (2, 1, 2, 20)")
    db = opener.reopened(db)
    bank("INSERT INTO transfers VALUES (3, 1, 2, 30)")
    tick(db, opener)
    assert sorted(db.execute("SELECT id FROM transfers").rows) == [(1,), (2,), (3,)]
    assert set(before) <= set(db.execute('SELECT timestamp, "offset" FROM reclock.bindings').rows)
    assert db.execute("SELECT count(*) FROM transfers AS OF 3000").rows == [(1,)]


def test_views_over_tables_agree(db, bank, opener):
    db.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS s FROM accounts")
    tick(db, opener)
    bank("BEGIN; UPDATE accounts SET balance = balance - 10 WHERE id = 1; "
         "UPDATE accounts SET balance = balance + 10 WHERE id = 2; COMMIT")  # fmt: skip
    tick(db, opener)
    assert db.execute("SELECT s FROM total").rows == [(Decimal(1000),)]
    assert db.execute("SELECT balance FROM accounts WHERE id = 1").rows == [(Decimal(90),)]


def test_only_what_is_durable_is_acknowledged(db, bank, opener):
    def confirmed():
        ((text,),) = bank("SELECT confirmed_flush_lsn::text FROM pg_replication_slots "
                          f"WHERE database = '{bank.name}'")  # fmt: skip
        return Lsn.parse(text)

    def bound():
        return max(n for (n,) in db.execute('SELECT "offset" FROM reclock.bindings').rows)

    tick(db, opener)
    assert confirmed() == bound()
    bank("INSERT INTO transfers VALUES (1, 1, 2, 10)")
    intake = db._core.intakes[db._core.world.catalog.find(("bank",)).id]
    while intake.pull():
        pass
    assert intake.staged_rows == 1
    assert confirmed() == bound()
    tick(db, opener)
    while intake.pull():
        pass
    for _ in range(100):
        if confirmed() == bound():
            break
    assert confirmed() == bound()


def test_an_idle_database_lets_the_slot_move_on(db, bank, opener):
    tick(db, opener)
    first = db.execute('SELECT max("offset") FROM reclock.bindings').rows
    bank("CREATE TABLE elsewhere (n INT)")
    bank("INSERT INTO elsewhere SELECT generate_series(1, 1000)")
    opener.clock.advance(10_000)
    db.tick()
    assert db.execute('SELECT max("offset") FROM reclock.bindings').rows > first
    assert db.execute("SELECT count(*) FROM accounts").rows == [(10,)]
    status = db.execute("SELECT state, lag_bytes FROM reclock.source_status").rows
    assert status == [("running", 0)]


def test_log_of_others_is_nothing_to_wait_for(db, bank, opener):
    def own():
        return db.execute("SELECT lsn, committed_at FROM bank").rows[0]

    tick(db, opener)
    assert own()[1] is None
    bank("INSERT INTO transfers VALUES (1, 1, 2, 10)")
    tick(db, opener)
    lsn, committed = own()
    ((now,),) = bank("SELECT now()")
    assert abs((now - committed).total_seconds()) < 600
    bank("CREATE TABLE elsewhere (n INT)")
    tick(db, opener)  # the log is read, and is bound only now and then
    assert own() == (lsn, committed)
    status = "SELECT state, lag_ms FROM reclock.source_status"
    assert db.execute(status).rows == [("running", 0)]
    for _ in range(2):
        opener.clock.advance(10_000)
        db.tick()
        assert own()[0] > lsn
        assert own()[1] == committed
        lsn = own()[0]
        db = opener.reopened(db)
        bank("INSERT INTO elsewhere VALUES (1)")


def test_the_slot_of_an_idle_database_lets_the_server_forget_its_log(db, bank, opener):
    def kept():
        ((confirmed, restart),) = bank(
            "SELECT confirmed_flush_lsn::text, restart_lsn::text FROM pg_replication_slots "
            f"WHERE database = '{bank.name}'"
        )
        return Lsn.parse(confirmed), Lsn.parse(restart)

    tick(db, opener)
    confirmed, restart = kept()
    bank("CREATE TABLE elsewhere (n INT)")
    for _ in range(20):
        bank("INSERT INTO elsewhere SELECT generate_series(1, 1000)")
        bank("CHECKPOINT")  # the server notes where decoding can begin
        opener.clock.advance(10_000)
        db.tick()
        db._core.intakes[db._core.world.catalog.find(("bank",)).id].pull()
        if kept()[1] > restart:
            break
    assert kept()[0] > confirmed
    assert kept()[1] > restart
    assert db.execute("SELECT * FROM transfers").rows == []


def test_the_lag_is_what_is_not_bound_yet(db, bank, opener):
    tick(db, opener)
    tick(db, opener)
    lag = "SELECT lag_bytes, lag_ms FROM reclock.source_status"
    ((behind, late),) = db.execute(lag).rows
    assert (behind < 10_000, late) == (True, 0)  # the server itself writes to its log, too
    bank("INSERT INTO transfers SELECT i, 1, 2, 3 FROM generate_series(1, 1000) i")
    opener.clock.advance(300)
    intake = db._core.intakes[db._core.world.catalog.find(("bank",)).id]
    while intake.pull():
        pass
    ((behind, late),) = db.execute(lag).rows
    assert behind > 50 * 1_000, "each row takes more than 50 bytes of log"
    (source,) = db.facts.sources()  # what metrics tell: a log has no records
    assert (source.lag_bytes, source.lag_records) == (behind, None)
    assert late == 300
    tick(db, opener)
    assert db.execute(lag).rows[0][0] < 10_000
    assert db.execute("SELECT count(*) FROM transfers").rows == [(1000,)]


def test_a_table_without_a_key_is_told_of_at_once(bank, opener):
    bank("CREATE TABLE bare (n INT)")
    bank("ALTER PUBLICATION p ADD TABLE bare")
    result = opener().execute(f"CREATE SOURCE bank {bank.source()}")
    (notice,) = result.notices  # and not of notes, which has REPLICA IDENTITY FULL
    assert 'table "bare" has no key' in notice
    assert "ALTER TABLE public.bare REPLICA IDENTITY FULL" in notice
    with pytest.raises(psycopg2.Error, match="replica identity"):
        bank("INSERT INTO bare VALUES (1); DELETE FROM bare")
    bank("ALTER TABLE public.bare REPLICA IDENTITY FULL")


def test_dropping_the_source_drops_its_tables_and_its_slot(db, bank, opener):
    tick(db, opener)
    assert len(bank.slots()) == 1
    with pytest.raises(StatementError, match='it is a table of source "bank"'):
        db.execute("DROP SOURCE accounts")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT id FROM accounts")
    with pytest.raises(Error, match="other objects depend on it"):
        db.execute("DROP SOURCE bank")
    db.execute("DROP SOURCE bank CASCADE")
    assert bank.slots() == []
    assert db.execute("SELECT name FROM reclock.objects").rows == []
    assert db._core.intakes.slots.all() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE accounts DROP COLUMN owner", 'column "owner" .* was dropped'),
        ("ALTER TABLE accounts RENAME owner TO who", 'column "owner" .* was dropped'),
        ("ALTER TABLE accounts ALTER owner TYPE varchar(20)", 'column "owner" .* another type'),
        ("ALTER TABLE accounts ALTER balance TYPE numeric(20,4)", "another type"),
    ],
)
def test_a_column_that_goes_is_a_lasting_error_from_there_on(db, bank, opener, change, said):
    tick(db, opener)
    bank("INSERT INTO accounts VALUES (50, 'x', 1)")
    bank(change)
    bank("INSERT INTO accounts (id, balance) VALUES (51, 1)")
    tick(db, opener)
    tick(db, opener)
    with pytest.raises(Error, match=said):
        db.execute("SELECT * FROM accounts")
    assert db.execute("SELECT count(*) FROM accounts AS OF 3000").rows == [(11,)]
    assert db.execute("SELECT state FROM reclock.source_status").rows == [("failed",)]
    db.execute("CREATE TABLE other (n INT)")
    db.execute("INSERT INTO other VALUES (1)")
    assert db.execute("SELECT * FROM other").rows == [(1,)]
    db.execute("DROP SOURCE bank")
    assert bank.slots() == []


def test_a_column_more_is_left_out(db, bank, opener):
    tick(db, opener)
    bank("ALTER TABLE accounts ADD COLUMN extra INT DEFAULT 7")
    bank("INSERT INTO accounts VALUES (50, 'x', 1, 8)")
    tick(db, opener)
    assert db.execute("SELECT * FROM accounts WHERE id = 50").rows == [(50, "x", Decimal(1))]


def test_a_slot_that_is_gone_is_a_lasting_error(db, bank, opener):
    tick(db, opener)
    opener.crash(db)
    for _ in range(100):
        if bank(f"SELECT 1 FROM pg_replication_slots WHERE active AND database = '{bank.name}'"):
            continue
        break
    bank("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
         f"WHERE database = '{bank.name}'")  # fmt: skip
    db = opener()
    tick(db, opener)
    with pytest.raises(Error, match="is gone"):
        db.execute("SELECT * FROM accounts")
    assert db.execute("SELECT count(*) FROM accounts AS OF 2000").rows == [(10,)]


def test_a_server_that_is_away_is_waited_for(db, bank, opener):
    tick(db, opener)
    bank("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
         f"WHERE datname = '{bank.name}' AND pid <> pg_backend_pid()")  # fmt: skip
    bank("INSERT INTO transfers VALUES (1, 1, 2, 10)")
    tick(db, opener)
    tick(db, opener)
    assert db.execute("SELECT id FROM transfers").rows == [(1,)]


@pytest.mark.parametrize(
    ("made", "code", "said"),
    [
        ("FOR TABLES (nothing)", "42P01", "no table public.nothing"),
        ("FOR TABLES (accounts, transfers AS accounts)", "42712", "named twice"),
        ("FOR TABLES (accounts AS bank)", "42712", "named twice"),
        ("FOR ALL TABLES WITH (tail = true)", "42601", "option"),
    ],
)
def test_what_is_wrong_is_said_at_once(bank, opener, made, code, said):
    db = opener()
    with pytest.raises(Error, match=said) as caught:
        db.execute(f"CREATE SOURCE bank {bank.source(made)}")
    assert caught.value.code == code
    assert bank.slots() == []


def test_a_publication_must_be_there_and_have_all(bank, opener):
    db = opener()
    with pytest.raises(Error, match='publication "q" does not exist') as caught:
        db.execute(f"CREATE SOURCE bank {bank.source(publication='q')}")
    assert caught.value.code == "42704"
    bank("CREATE PUBLICATION q FOR TABLE accounts WITH (publish = 'insert')")
    with pytest.raises(Error, match="leaves out updates and deletes and truncations"):
        db.execute(f"CREATE SOURCE bank {bank.source(publication='q')}")


def test_a_role_must_be_allowed_to_replicate(bank, opener):
    bank("DROP ROLE IF EXISTS weak")
    bank("CREATE ROLE weak LOGIN")
    db = opener()
    source = bank.source().replace("user=postgres", "user=weak")
    with pytest.raises(Error, match='role "weak" may not replicate') as caught:
        db.execute(f"CREATE SOURCE bank {source}")
    assert caught.value.code == "42501"


def test_a_right_that_is_lost_is_waited_for(bank, opener):
    bank("DROP ROLE IF EXISTS weak")
    bank("CREATE ROLE weak LOGIN REPLICATION; GRANT SELECT ON ALL TABLES IN SCHEMA public TO weak")
    db = opener()
    db.execute(f"CREATE SOURCE bank {bank.source().replace('user=postgres', 'user=weak')}")
    tick(db, opener)
    bank("ALTER ROLE weak NOREPLICATION; INSERT INTO transfers VALUES (1, 1, 2, 10)")
    bank("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'weak'")
    tick(db, opener)
    tick(db, opener)
    stall = db._core.intakes[db._core.world.catalog.find(("bank",)).id].stall
    assert (stall.code, "REPLICATION" in stall.hint) == ("42501", True)
    assert db.execute("SELECT state FROM reclock.source_status").rows == [("stalled",)]
    bank("ALTER ROLE weak REPLICATION")
    for _ in range(3):
        tick(db, opener)
    assert db.execute("SELECT id FROM transfers").rows == [(1,)]
    db.execute("DROP SOURCE bank")
    bank("DROP OWNED BY weak; DROP ROLE weak")


def test_every_row_must_be_readable(bank, opener):
    """A policy would hide rows from the copy, and the log has them."""
    bank("DROP ROLE IF EXISTS weak")
    bank("CREATE SCHEMA hidden; CREATE TABLE hidden.own (id INT PRIMARY KEY, n INT, secret INT)")
    bank("INSERT INTO hidden.own VALUES (1, 1, 1), (2, 2, 2)")
    bank("CREATE PUBLICATION q FOR TABLE hidden.own (id, n)")
    bank("CREATE ROLE weak LOGIN REPLICATION")
    made = bank.source(publication="q").replace("user=postgres", "user=weak")
    grants = ("GRANT USAGE ON SCHEMA hidden TO weak", "GRANT SELECT (id) ON hidden.own TO weak",
              "GRANT SELECT (n) ON hidden.own TO weak")  # fmt: skip
    db = opener()
    for sql in grants:
        with pytest.raises(Error, match=r'"weak" may not read table hidden\.own') as caught:
            db.execute(f"CREATE SOURCE s {made}")
        assert caught.value.code == "42501"
        bank(sql)
    bank("ALTER TABLE hidden.own ENABLE ROW LEVEL SECURITY")
    bank("CREATE POLICY few ON hidden.own USING (id > 1)")
    with pytest.raises(Error, match=r"row security hides rows of table hidden\.own") as caught:
        db.execute(f"CREATE SOURCE s {made}")
    assert caught.value.code == "42501"
    assert 'ALTER ROLE "weak" BYPASSRLS' in caught.value.hint
    assert bank.slots() == []
    bank("ALTER TABLE hidden.own DISABLE ROW LEVEL SECURITY")
    db.execute(f"CREATE SOURCE s {made}")
    bank("ALTER TABLE hidden.own ENABLE ROW LEVEL SECURITY")
    tick(db, opener)
    ((state, said),) = db.execute("SELECT state, detail FROM reclock.source_status").rows
    assert state == "stalled"
    assert "row security" in said
    bank("ALTER ROLE weak BYPASSRLS")
    tick(db, opener)
    assert sorted(db.execute("SELECT * FROM own").rows) == [(1, 1), (2, 2)]
    db.execute("DROP SOURCE s")
    bank("DROP OWNED BY weak; DROP ROLE weak")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("dbname=nix", "3D000", "dbname"),
        ("user=nix", "28000", "the user is right"),
        ("host=localhost port=1", "08006", "host and port"),
        ("host=nix.invalid", "08006", "host and port"),
        ("sslmode=nix", "22023", "a value that libpq knows"),
        ("port=nix", "22023", "a value that libpq knows"),
        ("hosst=nix", "22023", "as libpq takes it"),
        ("target_session_attrs=nix", "22023", "a value that libpq knows"),
        ("target_session_attrs=standby", "0A000", "the primary is meant"),
        ("target_session_attrs=prefer-standby", "0A000", "the primary is meant"),
        ("target_session_attrs=read-only", "0A000", "the primary is meant"),
    ],
)
def test_a_connection_that_is_wrong_is_said_at_once(bank, opener, given, code, said):
    db = opener()
    source = bank.source().replace(
        bank.connection, f"{bank.connection} {given}"
    )  # the last one counts
    with pytest.raises(Error) as caught:
        db.execute(f"CREATE SOURCE bank {source}")
    assert caught.value.code == code, caught.value
    assert said in caught.value.hint
    assert db.execute("SELECT name FROM reclock.objects").rows == []


@pytest.mark.parametrize("attrs", ["any", "primary", "read-write"])
def test_a_primary_may_be_asked_for(bank, opener, attrs):
    db = opener()
    given = f"{bank.connection} target_session_attrs={attrs}"
    db.execute(f"CREATE SOURCE bank {bank.source().replace(bank.connection, given)}")
    assert db.execute("SELECT count(*) FROM accounts").rows == [(10,)]


def test_a_password_is_shown_nowhere(bank, opener):
    db = opener()
    source = bank.source().replace("PUBLICATION", "PASSWORD SECRET 'hunter2' PUBLICATION", 1)
    db.execute(f"CREATE SOURCE bank {source}")
    tick(db, opener)
    shown = db.execute("SELECT name, sql FROM reclock.objects").rows
    assert len(shown) == 4
    assert not any("hunter2" in text for _, text in shown)
    assert all("PASSWORD SECRET '***'" in text for _, text in shown)
    with pytest.raises(Error, match="must not contain a password"):
        db.execute(f"CREATE SOURCE b {bank.source().replace('user=', 'password=x user=')}")
    db = opener.reopened(db)
    bank("INSERT INTO transfers VALUES (1, 1, 2, 10)")
    tick(db, opener)
    assert db.execute("SELECT id FROM transfers").rows == [(1,)]
