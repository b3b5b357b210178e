"""A client that looks keys up, in a process of its own: ``python -m benchmarks.clients.look_up``.

It says that it is there, begins when it is told to, and says how long each look-up took. It imports
little, so that ten of them are there soon.
"""

from __future__ import annotations

import json
import random
import sys
import time

import psycopg

LOOK_UP = "SELECT * FROM items WHERE id = %s"


def main(where: str, isolation: str, rows: int, seconds: float) -> None:
    """Look random keys up for some seconds."""
    taken = []
    with psycopg.connect(where, autocommit=True) as client:
        client.execute(f"SET transaction_isolation = '{isolation}'")
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            client.execute(LOOK_UP, (random.randrange(rows),), prepare=True).fetchall()
            taken.append(time.monotonic() - begun)
    print(json.dumps(taken))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
