"""Each TLS mode of libpq is what it says, with a server that has TLS and with one that has not."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg2
import pytest
import trustme

from reclock.errors import Error
from reclock.testing.postgres import _account

BINS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name))
"""Of the servers that Debian has: that of the wheel has no TLS."""

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not BINS, reason="no server of Debian is installed"),
]


class Server:
    """A server on a port, with a certificate for localhost; ``root`` has the authorities'."""

    def __init__(self, root):
        self.root = root
        authority, stranger = trustme.CA(), trustme.CA()
        made = authority.issue_cert("localhost")
        made.private_key_pem.write_to_path(f"{root}/server.key")
        made.cert_chain_pems[0].write_to_path(f"{root}/server.crt")
        (root / "server.key").chmod(0o600)
        authority.cert_pem.write_to_path(f"{root}/root.crt")
        stranger.cert_pem.write_to_path(f"{root}/stranger.crt")
        self.right = f"sslrootcert={root}/root.crt"
        self.wrong = f"sslrootcert={root}/stranger.crt"
        account = _account()
        if account:
            for one in (root, *root.iterdir()):
                shutil.chown(one, account["user"], account["group"])
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **account}
        initdb = [
            BINS[-1] / "initdb",
            "-D",
            f"{root}/data",
            "-U",
            "postgres",
            "--auth=trust",
            "-N",
        ]
        subprocess.run(initdb, check=True, cwd=root, **quiet)
        command = [BINS[-1] / "postgres", "-D", f"{root}/data", "-k", f"{root}", "-p", f"{port}"]
        settings = {"ssl_cert_file": f"{root}/server.crt", "wal_level": "logical",
                    "ssl_key_file": f"{root}/server.key", "fsync": "off",
                    "listen_addresses": "127.0.0.1"}  # fmt: skip
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self.place = f"port={port} user=postgres dbname=postgres"
        self.process = subprocess.Popen(command, cwd=root, **quiet)
        self.session = self.reached(f"host={root}")
        self.session.autocommit = True

    def reached(self, where):
        for _ in range(200):
            with suppress(psycopg2.OperationalError):
                return psycopg2.connect(f"{where} {self.place}")
            time.sleep(0.05)
        raise AssertionError(where)

    def __call__(self, sql):
        with self.session.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def set_tls(self, on):
        self(f"ALTER SYSTEM SET ssl = {on}")
        self("SELECT pg_reload_conf()")
        if on == "on":
            self.reached("host=127.0.0.1 sslmode=require").close()
            return
        with suppress(psycopg2.OperationalError):  # until it has read its configuration again
            while True:
                psycopg2.connect(f"host=127.0.0.1 sslmode=require {self.place}").close()

    def close(self):
        self.session.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


@pytest.fixture
def server(opener):
    root = Path(tempfile.mkdtemp(prefix="reclock-tls-"))
    made = Server(root)
    made("CREATE TABLE t (id INT PRIMARY KEY)")
    made("INSERT INTO t VALUES (1)")
    made("CREATE PUBLICATION p FOR TABLE t")
    yield made
    opener.close()
    opener._opened.clear()
    made.close()
    shutil.rmtree(root)


def create(db, server, where):
    db.execute(f"CREATE SOURCE s FROM POSTGRES CONNECTION '{where} {server.place}' "
               "PUBLICATION 'p' FOR ALL TABLES")  # fmt: skip


def refused(db, server, where):
    with pytest.raises(Error) as caught:
        create(db, server, where)
    assert caught.value.code == "28000", caught.value


def tick(db, opener):
    opener.clock.advance(1_000)
    db.tick()


def works(db, opener, server, where, *, tls):
    create(db, server, where)
    tick(db, opener)
    assert db.execute("SELECT * FROM t").rows == [(1,)]
    tick(db, opener)  # the log, too
    found = server("SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) "
                   "WHERE a.application_name LIKE 'reclock%'")  # fmt: skip
    assert found == [(tls,)], where
    db.execute("DROP SOURCE s")


def test_a_mode_is_what_it_says(server, opener):
    server.set_tls("on")
    db = opener()
    named, bare = "host=localhost hostaddr=127.0.0.1", "host=127.0.0.1"
    refused(db, server, f"{named} sslmode=verify-full {server.wrong}")
    refused(db, server, f"{bare} sslmode=verify-full {server.right}")  # it is another name
    refused(db, server, f"{named} sslmode=verify-ca {server.wrong}")
    works(db, opener, server, f"{named} sslmode=verify-full {server.right}", tls=True)
    works(db, opener, server, f"{bare} sslmode=verify-ca {server.right}", tls=True)
    works(db, opener, server, f"{named} sslmode=require", tls=True)
    works(db, opener, server, f"{bare} sslmode=prefer", tls=True)
    works(db, opener, server, f"{bare} sslmode=allow", tls=False)
    works(db, opener, server, f"{bare} sslmode=disable", tls=False)


def test_a_server_without_tls_is_refused_where_it_is_required(server, opener):
    server.set_tls("off")
    db = opener()
    for mode in ("require", f"verify-ca {server.right}", f"verify-full {server.right}"):
        refused(db, server, f"host=localhost hostaddr=127.0.0.1 sslmode={mode}")
    for mode in ("disable", "allow", "prefer"):
        works(db, opener, server, f"host=127.0.0.1 sslmode={mode}", tls=False)
