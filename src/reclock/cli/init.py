"""``reclock init``: a small pipeline to start from.

Tests: tests/cli/test_init.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

PIPELINE: Final = """\
-- A pipeline: `reclock run {name}` applies it and keeps it running; run it again after a
-- stop, or a crash, and it goes on where it was.

-- Where data comes from. A generator needs nothing; a topic would be
--   CREATE SOURCE transfers (id BIGINT, from_account BIGINT, to_account BIGINT, amount BIGINT)
--     FROM KAFKA BROKER 'localhost:9092' TOPIC 'transfers' FORMAT JSON;
-- and `reclock dev kafka start` runs a Kafka on this machine.
CREATE SOURCE transfers FROM LOAD GENERATOR BANK (SEED 1, ACCOUNTS 50);

-- Views are kept up to date, whatever changes, and all agree at every timestamp.
CREATE MATERIALIZED VIEW balance AS
  SELECT account, sum(amount) AS balance
  FROM (SELECT to_account AS account, amount FROM transfers
        UNION ALL
        SELECT from_account, -amount FROM transfers) AS moves
  GROUP BY account;

-- Money is only moved: this is 0, whenever one looks.
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM balance;

-- Where results go: every change once, through any crash.
-- CREATE SINK balances FROM balance INTO KAFKA BROKER 'localhost:9092' TOPIC 'balances'
--   KEY (account) FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true);
"""


@click.command(short_help="Write a small commented pipeline to start from.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="pipeline.sql")
def init(file: Path) -> None:
    """Write a small commented pipeline into FILE (pipeline.sql) to start from."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(PIPELINE.format(name=file))
    except FileExistsError:
        message = f"{file} is there already: name another file"
        raise click.ClickException(message) from None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise click.ClickException(message) from None
    click.echo(f"wrote {file}; now: reclock run {file}")
