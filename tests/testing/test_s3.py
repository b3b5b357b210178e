from __future__ import annotations

import pytest

from s3 import BUCKET, KEYS, filesystem, running_s3, way_to


@pytest.mark.slow(seconds=40)
def test_what_was_written_is_there_after_a_kill(tmp_path):
    with running_s3(tmp_path / "s3") as server, way_to(server) as way:
        far = filesystem(way.endpoint, **KEYS)
        with far.open_output_stream(f"{BUCKET}/x") as out:
            out.write(b"data")
        server.kill()
        with pytest.raises(OSError, match="AWS Error"):
            far.open_input_file(f"{BUCKET}/x")
        server.start()
        assert far.open_input_file(f"{BUCKET}/x").read() == b"data"
        assert way.requests
