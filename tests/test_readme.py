"""README's shell block over its pipeline, pasted into a shell as it stands, with a real Kafka."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
RECLOCK = """#!/bin/sh
case "$1 $2 $3" in
  "dev kafka start") shift 3; set -- dev kafka start --port "$KAFKA_PORT" --dir "$KAFKA_DIR" "$@" ;;
  "dev kafka "*) name=$3; shift 3; set -- dev kafka "$name" --dir "$KAFKA_DIR" "$@" ;;
esac
exec "$PYTHON" -m reclock "$@"
"""
"""The command, with a broker that is the test's own: its port may be taken on this machine."""


@pytest.mark.kafka
@pytest.mark.spark
def test_the_shell_block_works_when_pasted(tmp_path: Path) -> None:
    pipeline, pasted = re.findall(
        r"^```(?:sql|sh)\n(.*?)^```", README.partition("## Topics, files and")[2], re.M | re.S
    )[:2]
    assert "CREATE MATERIALIZED VIEW sales" in pipeline
    assert "reclock run" in pasted
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "pipeline.sql").write_text(pipeline.replace("localhost:9092", f"localhost:{port}"))
    command = tmp_path / "bin" / "reclock"
    command.parent.mkdir()
    command.write_text(RECLOCK)
    command.chmod(0o755)
    env = {
        **os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHON": sys.executable,
        "KAFKA_PORT": str(port), "KAFKA_DIR": str(tmp_path / "broker"),
    }  # fmt: skip
    end = "\nkill %1\nwait %1\necho ended $?\n"
    try:
        done = subprocess.run(
            ["bash", "-m", "-c", pasted + end],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    finally:
        subprocess.run([command, "dev", "kafka", "stop"], env=env, timeout=60, check=False)
    assert re.search(r"^ north +\| +1 \| +20\.00$", done.stdout, re.M), done
    assert done.stdout.endswith("ended 0\n"), done
