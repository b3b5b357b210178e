"""The shell as a client of the process that has the state, and the file that says where that is."""

from __future__ import annotations

import json
import socket
import stat
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engines.model_engine import ModelEngine
from reclock.cli.shell.shell import Shell
from reclock.cli.sql import awaited, remote
from reclock.durable.ownership import owner_name
from reclock.errors import InvalidValue, StatementError, StorageError
from reclock.secret import Secret
from reclock.server.announcement import announced
from reclock.server.background import serving
from reclock.server.client import RemoteDatabase
from reclock.server.server import Options
from reclock.server.signpost import NAME, Signpost, new_key, private_socket, read_signpost, signpost
from reclock.session.database import Database


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def served(state):
    key = new_key()
    with ExitStack() as stack:
        db = stack.enter_context(Database(state, ModelEngine()))
        db.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT, n NUMERIC(12,2), w TIMESTAMPTZ)")
        db.execute(
            "INSERT INTO t VALUES (1, 'x', 1.5, '2026-01-02 03:04:05+00'), (2, NULL, 0, NULL)"
        )
        server = stack.enter_context(serving(db, Options(port=0, grace=1, key=key)))
        stack.enter_context(signpost(state, "0.0.0.0", server.port, key))
        yield db


def test_rows_are_those_that_the_process_itself_gives(served, state):
    query = "SELECT * FROM t ORDER BY a"
    with remote(state) as db:
        found = db.execute(query)
        assert found.rows == served.execute(query).rows
        assert found.rows[0][2:] == (Decimal("1.50"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        assert db.execute("CREATE TABLE u (a INT); INSERT INTO u VALUES (1)").tag == "INSERT 0 1"
        assert served.execute("SELECT a FROM u").rows == [(1,)]
        assert db.execute("SELECT current_user").rows == [("owner",)]


def test_errors_keep_what_they_say(served, state):
    with remote(state) as db:
        with pytest.raises(StatementError) as caught:
            db.execute("SELECT nothing FROM t")
        assert (caught.value.code, caught.value.position) == ("42703", 8)
        assert caught.value.hint
        assert db.execute("SELECT 1").rows == [(1,)], "it goes on"


def test_the_shell_does_not_know_the_difference(served, state):
    said: list[list[str]] = []
    text = "SELECT a, n FROM t ORDER BY a;\n\\dt\n\\sf t\nCOPY (SELECT a FROM t) TO STDOUT;\n"
    text += "SUBSCRIBE t AS OF AT LEAST 0 UP TO 9223372036854775807;\n"
    with remote(state) as db:
        for one in (db, served):
            heard: list[str] = []
            shell = Shell(one, heard.append)
            shell.feed(text.rpartition("SUBSCRIBE")[0])
            shell.close()
            said.append(heard)
    assert said[0] == said[1]
    assert "(2 rows)" in said[0][0]


def test_a_subscription_is_followed_and_left(served, state):
    with remote(state) as db:
        session = db.session()
        with session.subscribe("SUBSCRIBE (SELECT a FROM t)") as subscription:
            assert subscription.columns == ("mz_timestamp", "mz_diff", "a")
            rows = subscription.fetch(1, 1)
            assert {next(rows)[2], next(rows)[2]} == {1, 2}
        assert session.execute("SELECT 1").rows == [(1,)], "it was cancelled"
        session.close()


def test_the_file_is_for_its_owner_and_goes(served, state):
    assert stat.S_IMODE((state / NAME).stat().st_mode) == 0o600
    assert read_signpost(state).host == "127.0.0.1"


def test_a_socket_in_the_directory_is_for_its_owner_alone(tmp_path):
    key, path = new_key(), private_socket(tmp_path / "s")
    with Database(tmp_path / "s", ModelEngine()) as db:
        Path(path).write_text("of a process that was killed")
        with (
            serving(db, Options(path, 0, grace=1, key=key)) as server,
            signpost(tmp_path / "s", path, server.port, key),
            remote(tmp_path / "s") as found,
        ):
            assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
            assert found.execute("SELECT current_user").rows == [("owner",)]
            assert found.execute("SELECT client_addr FROM pg_stat_activity").rows == [(None,)] * 2
            with pytest.raises(StorageError, match=r"at /.*listening\.sock"):
                RemoteDatabase(Signpost(path, 0, Secret("another")))
    assert not Path(path).exists()
    assert remote(tmp_path / "s") is None


def test_a_path_too_long_for_a_socket_is_said(tmp_path):
    state = tmp_path / ("long" * 30)
    state.mkdir()
    with Database(tmp_path / "s", ModelEngine()) as db:
        path = private_socket(state)
        with (
            pytest.raises(InvalidValue, match=r"cannot listen at /.*sock"),
            serving(db, Options(path, 0)),
        ):
            pass


def test_one_that_is_starting_is_waited_for(tmp_path):
    state, key, said = tmp_path / "s", new_key(), []
    assert awaited(state, said.append) is None
    with announced(state), Database(state, ModelEngine()) as db:
        server = serving(db, Options(private_socket(state), 0, grace=1, key=key))
        with ExitStack() as stack:

            def listen():
                stack.enter_context(server)
                stack.enter_context(signpost(state, private_socket(state), 0, key))

            later = threading.Timer(1, listen)
            later.start()
            with awaited(state, said.append) as found:
                assert found.execute("SELECT 1").rows == [(1,)]
            later.join()
    assert said == [f"waiting for {owner_name()}, which is starting or stopping with {state} …"]


def test_one_that_does_not_come_that_far_is_not_waited_for(tmp_path):
    said: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(announced(tmp_path))
        later = threading.Timer(1, stack.close)
        later.start()
        assert awaited(tmp_path, said.append) is None
        later.join()
    assert len(said) == 1


def test_what_a_killed_process_leaves_behind_counts_for_nothing(tmp_path):
    assert remote(tmp_path) is None
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    for text in ("", "{}", json.dumps({"v": 2}), "[]"):
        (tmp_path / NAME).write_text(text)
        assert remote(tmp_path) is None
    (tmp_path / NAME).write_text(
        json.dumps({"v": 1, "host": "127.0.0.1", "port": port, "key": "k"})
    )
    assert remote(tmp_path) is None


def test_a_server_that_does_not_know_the_key_is_not_believed(served, state):
    found = read_signpost(state)
    with pytest.raises(StorageError):
        RemoteDatabase(Signpost(found.host, found.port, Secret("another")))


def test_a_server_of_another_state_that_lets_all_in_is_not_believed(tmp_path):
    with (
        Database(tmp_path / "other", ModelEngine(), background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
        signpost(tmp_path, "127.0.0.1", server.port, new_key()),
    ):
        assert remote(tmp_path) is None
    assert not (tmp_path / NAME).exists()
