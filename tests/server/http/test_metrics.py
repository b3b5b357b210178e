"""What Prometheus gets: every metric that is documented, and no other, from published facts."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from debian import program
from reclock.engine.meters import Histogram
from reclock.server.http.gauges import Gauges
from reclock.server.http.metrics import FAMILIES, Metrics

if TYPE_CHECKING:
    import httpx

    from reclock.session.database import Database

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


def scraped(client: httpx.Client) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples by name; values of labels in the order of the labels' names."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[
                tuple(v for _, v in sorted(sample.labels.items()))
            ] = sample.value
    return found


def test_the_document_lists_the_metrics_of_a_scrape(client: httpx.Client) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.M)
    told = {(name, kind, tuple(re.findall(r"`(\w+)`", labels)), text)
            for name, kind, labels, text in rows if name.startswith("reclock_")}  # fmt: skip
    assert told == {(f.name, f.kind, f.labels, f.meaning) for f in FAMILIES}
    text = client.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    assert {f.name: f.kind for f in FAMILIES}.items() <= kinds.items()
    others = {name for name in kinds if not name.startswith("reclock_")}
    documented = {name for name, *_ in rows if not name.startswith("reclock_")}
    assert {n for n in others if not n.endswith("_created")} == documented


def test_prometheus_itself_reads_a_scrape_and_finds_nothing_to_mend(client: httpx.Client) -> None:
    promtool = program("promtool", "prometheus")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=client.get("/metrics").content,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_names_and_units_follow_the_conventions() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"reclock_[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert not re.search(r"_(ms|millis|kb|mb|minutes)(_|$)", family.name)


def test_what_happens_is_counted(client: httpx.Client, db: Database) -> None:
    before = scraped(client)
    db.execute("INSERT INTO accounts VALUES (10, 'eve', 1)")
    db.execute("SELECT * FROM total")
    after = scraped(client)
    changed = "reclock_object_changed_rows_total"
    key = "table", "accounts"
    assert after[changed][key] >= before[changed].get(key, 0) + 1
    count = "reclock_statement_duration_seconds_count"
    assert after[count]["insert",] == before[count].get(("insert",), 0) + 1
    assert after["reclock_tick_duration_seconds_count"]["total",] >= 1
    assert after["reclock_source_state"]["counter", "failed"] == 0
    assert after["reclock_state_disk_free_bytes"][()] > 0
    assert after["reclock_arrangement_records"]["accounts", "collection"] >= 3


def test_a_scrape_waits_for_no_lock(db: Database) -> None:
    """A tick, or a statement, may have the lock for as long as it likes."""
    metrics, done = Metrics(db, Gauges()), threading.Event()

    def scrape() -> None:
        metrics.text()
        done.set()

    with db._core.lock:
        thread = threading.Thread(target=scrape)
        thread.start()
        assert done.wait(5), "the scrape waits for the lock"
    thread.join()


def test_a_scrape_of_many_objects_is_fast(db: Database) -> None:
    """A median of 50 ms on an idle machine; here ten times that, as others use it too."""
    db.execute("".join(f"CREATE TABLE many{n} (a INT, b TEXT);" for n in range(100)))
    metrics = Metrics(db, Gauges())
    taken = []
    for _ in range(5):
        begun = perf_counter()
        metrics.text()
        taken.append(perf_counter() - begun)
    db.execute("".join(f"DROP TABLE many{n};" for n in range(100)))
    assert sorted(taken)[2] < 0.5


def test_names_with_quotes_and_line_ends_are_escaped(client: httpx.Client, db: Database) -> None:
    db.execute('CREATE TABLE "a""b\\c\nd" (x INT)')
    try:
        assert ("table", 'a"b\\c\nd') in scraped(client)["reclock_object_lag_seconds"]
    finally:
        db.execute('DROP TABLE "a""b\\c\nd"')


def test_a_histogram_loses_nothing() -> None:
    histogram = Histogram()
    threads = [
        threading.Thread(target=lambda: [histogram.observe(0.002) for _ in range(1_000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(histogram.now().buckets) == 4_000
