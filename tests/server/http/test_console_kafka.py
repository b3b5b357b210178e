"""The console over a pipeline that runs, with sources and a sink of Kafka; every page, as a person.

``RECLOCK_SCREENSHOTS=1`` has it run with Spark for a while, and takes the pictures of
docs/console.md and README.md.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from prometheus_client.parser import text_string_to_metric_families

import reclock
from browser import DEVICES, PHONE, Wrong, running, violations, written
from engines.local_engine import LocalEngine
from reclock.errors import SinkUnavailable, SourceUnavailable
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database
from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from reclock.testing.kafka import RealKafka

IMAGES = Path(__file__).parents[3] / "docs" / "images"
PICTURES = "RECLOCK_SCREENSHOTS" in os.environ
pytestmark = [pytest.mark.kafka, pytest.mark.placed] + [pytest.mark.spark] * PICTURES
REGIONS = ("north", "south", "east", "west")
WIDE = """[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, .pipe"))
.filter(e => e.getBoundingClientRect().right > 391).map(e => e.tagName + "." + e.className)"""
PATIENCE = 30_000
MADE = """
CREATE SOURCE orders (id BIGINT, region TEXT, customer INT, amount BIGINT)
  FROM KAFKA BROKER '{broker}' TOPIC '{orders}' FORMAT JSON WITH (on_error = 'skip');
CREATE SOURCE payments (order_id BIGINT, paid BIGINT)
  FROM KAFKA BROKER '{broker}' TOPIC '{payments}' FORMAT JSON;
CREATE TABLE customers (id INT PRIMARY KEY, name TEXT);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace'), (3, 'Edsger'), (4, 'Barbara');
CREATE MATERIALIZED VIEW sales AS
  SELECT region, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY region;
CREATE MATERIALIZED VIEW open_orders AS
  SELECT o.id, c.name, o.amount - p.paid AS missing
  FROM orders o JOIN payments p ON o.id = p.order_id JOIN customers c ON o.customer = c.id
  WHERE o.amount > p.paid;
CREATE VIEW late AS SELECT name, sum(missing) AS missing FROM open_orders GROUP BY name;
CREATE MATERIALIZED VIEW worst AS SELECT name, missing FROM late ORDER BY missing DESC LIMIT 3;
CREATE SINK sales_out FROM sales INTO KAFKA BROKER '{broker}' TOPIC '{out}' KEY (region)
  FORMAT JSON ENVELOPE UPSERT;
"""


HOSTILE = "<img src=x onerror=alert(1)>"
BAD = f"""
CREATE MATERIALIZED VIEW "v{HOSTILE}" AS SELECT id, 100 / (amount - amount) AS n FROM orders;
CREATE MATERIALIZED VIEW "w{HOSTILE}" AS SELECT region, count(*) AS n FROM orders GROUP BY region;
CREATE SINK "k{HOSTILE}" FROM "w{HOSTILE}" INTO KAFKA BROKER '{{broker}}' TOPIC '{{bad}}'
  KEY (region) FORMAT JSON ENVELOPE UPSERT;
"""
"""What fails, under names that mean harm."""


class Feed(threading.Thread):
    """Orders, and payments of most of them, some less than was asked for; now and then, rubbish."""

    def __init__(self, kafka: RealKafka, orders: str, payments: str) -> None:
        super().__init__(name="feed")
        self.kafka, self.orders, self.payments = kafka, orders, payments
        self.done = threading.Event()

    def run(self) -> None:
        chance, number = random.Random(7), 0
        while not self.done.wait(0.25):
            for partition, share in ((0, 4), (1, 2), (2, 1)):
                made: list[tuple[dict[str, Any], dict[str, Any]]] = []
                for _ in range(chance.randint(0, share)):
                    number += 1
                    amount = chance.randint(5, 200)
                    order = {"id": number, "region": chance.choice(REGIONS),
                             "customer": chance.randint(1, 4), "amount": amount}  # fmt: skip
                    paid = amount - chance.choice((0, 0, 0, 5))
                    made.append((order, {"order_id": number, "paid": paid}))
                if made:
                    self.kafka.produce(
                        self.orders, partition, *(Record(json.dumps(o).encode()) for o, _ in made)
                    )
                    self.kafka.produce(
                        self.payments, 0, *(Record(json.dumps(p).encode()) for _, p in made)
                    )


@pytest.fixture(scope="module")
def topics(kafka: RealKafka) -> dict[str, str]:
    names = {"orders": kafka.create_topic(3), "payments": kafka.create_topic()}
    kafka.produce(names["orders"], 1, Record(b'{"id": "<b>not a number</b>", "region": 7}'))
    return {**names, "out": f"sales-{names['orders'][-6:]}", "bad": f"bad-{names['orders'][-6:]}"}


@pytest.fixture(scope="module")
def db(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: RealKafka,
    topics: dict[str, str],
    request: pytest.FixtureRequest,
) -> Iterator[Database]:
    if PICTURES:
        request.getfixturevalue("spark")  # which outlives this file
    feed = Feed(kafka, topics["orders"], topics["payments"])
    state = tmp_path_factory.mktemp("console") / "state"
    with reclock.open(state) if PICTURES else Database(state, LocalEngine()) as made:
        made.execute(MADE.format(broker=kafka.address, **topics))
        feed.start()
        try:
            yield made
        finally:
            feed.done.set()
            feed.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running() as made:
        yield made


@pytest.fixture(scope="module")
def page(db: Database, browser: Browser) -> Iterator[Page]:
    with HttpServer(db, HttpOptions(port=0, trusts_local=True)) as server:
        context = browser.new_context(viewport={"width": 1360, "height": 900}, base_url=server.url)
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        made, wrong = context.new_page(), Wrong()
        wrong.watch(made)
        if PICTURES:
            made.goto("/")
            time.sleep(100)
        yield made
        expect.set_options(timeout=5_000)
        context.close()
        assert wrong == []


def taken(page: Page, name: str) -> None:
    """Take a picture, if pictures are wanted."""
    if PICTURES:
        page.wait_for_timeout(2_500)
        page.screenshot(path=IMAGES / f"console-{name}.png")


def test_overview(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text("All is well")).to_be_visible()
    expect(page.get_by_text("2 sources, 1 sink")).to_be_visible()
    taken(page, "overview")


def test_pipeline(page: Page) -> None:
    page.goto("/#/pipeline")
    expect(page.locator("g.node")).to_have_count(8)
    expect(page.locator("path.edge")).to_have_count(7)
    expect(page.locator("path.edge.flow").first).to_be_visible()
    expect(page.get_by_role("button", name="source orders, running")).to_be_visible()
    expect(page.get_by_role("button", name="sink sales_out, running")).to_be_visible()
    page.get_by_role("button", name="materialized view open_orders").click()
    inside = page.get_by_role("complementary", name="open_orders")
    table = inside.get_by_role("table", name="Operators of open_orders")
    expect(table.get_by_role("cell", name=re.compile("Join")).first).to_be_visible()
    expect(
        inside.get_by_text(re.compile(r"Where it runs: .* on (the driver|Spark)"))
    ).to_be_visible()
    expect(inside.get_by_text("CREATE MATERIALIZED VIEW open_orders")).to_be_visible()
    expect(inside.get_by_text("Timeline: EpochMilliseconds")).to_be_visible()
    row = table.locator("tbody tr", has_text="Join").first.locator("td")
    expect(row.nth(1)).to_have_text(re.compile("^[1-9]"))  # records
    expect(row.nth(2)).to_have_text(re.compile("^[1-9].* K?B$"))
    expect(row.nth(3)).to_have_text(re.compile("^[0-9.]+ (µs|ms|s)$"))
    rates = re.compile("^[1-9.][0-9.]*/s · lag [0-9.]+ m?s$")
    expect(page.get_by_role("button", name="source orders").locator("text.m")).to_have_text(rates)
    expect(page.get_by_role("button", name="sink sales_out").locator("text.m")).to_have_text(rates)
    taken(page, "pipeline")


def test_sql_live(page: Page) -> None:
    page.goto("/#/sql")
    page.get_by_role("textbox", name="SQL").wait_for()
    written(page, "SELECT * FROM sales ORDER BY total DESC")
    expect(page.get_by_role("cell", name="north")).to_be_visible()
    written(page, "SUBSCRIBE (SELECT region, orders, total FROM sales)")
    expect(page.get_by_text("live: 4 rows")).to_be_visible()
    expect(page.locator("tr.changed td.lit").first).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(4)  # a row that changes stays where it is
    taken(page, "sql")
    page.get_by_role("button", name="Stop").click()


def test_time(page: Page) -> None:
    page.goto("/#/time")
    picture = page.get_by_role("img", name=re.compile("orders: 3 partitions;"))
    expect(picture).to_be_visible()
    expect(picture.get_by_text("since", exact=True)).to_be_visible()
    expect(picture.get_by_text("upper", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Holds")).to_contain_text("sink sales_out")
    if PICTURES:
        page.get_by_role("button", name="Switch to dark").click()
        page.wait_for_timeout(5_000)
        page.locator("svg.remap").first.hover(position={"x": 560, "y": 170})
        taken(page, "time")
        page.get_by_role("button", name="Switch to light").click()


def test_sources_have_partitions_and_the_record_that_does_not_decode(page: Page) -> None:
    page.goto("/#/sources")
    table = page.get_by_role("table", name="Partitions")
    expect(table.get_by_role("row", name=re.compile(r"^orders [012] "))).to_have_count(3)
    letter = page.get_by_role("table", name="Records that were skipped").locator("tbody tr")
    expect(letter).to_have_count(1)
    expect(letter).to_contain_text("<b>not a number</b>")
    cells = letter.locator("td").all_text_contents()
    assert (cells[0], cells[2], cells[3]) == ("orders", "1", "0")
    taken(page, "sources")


def test_sinks_have_transactions_and_their_frontier(page: Page, topics: dict[str, str]) -> None:
    page.goto("/#/sinks")
    expect(page.get_by_role("cell", name="sales_out")).to_be_visible()
    recent = page.get_by_role("table", name="Last transactions of sales_out").locator("tbody tr")
    expect(recent.nth(1)).to_be_visible()
    expect(page.get_by_text(re.compile(f"^{topics['out']}.*-consistency$"))).to_be_visible()
    taken(page, "sinks")


def test_settings(page: Page) -> None:
    page.goto("/#/settings")
    expect(page.get_by_role("cell", name="timestamp_interval", exact=True)).to_be_visible()


def test_metrics_of_sources_and_sinks_move(page: Page) -> None:
    found = {
        (sample.name, sample.labels.get("source") or sample.labels.get("sink")): sample.value
        for family in text_string_to_metric_families(page.request.get("/metrics").text())
        for sample in family.samples
    }
    for name in ("records_total", "bytes_total", "bindings"):
        assert found[f"reclock_source_{name}", "orders"] > 0
    assert found["reclock_source_errors_total", "orders"] == 1
    assert found["reclock_source_lag_records", "orders"] >= 0
    for name in ("messages_total", "bytes_total", "transactions_total"):
        assert found[f"reclock_sink_{name}", "sales_out"] > 0


def test_on_a_phone(page: Page, browser: Browser) -> None:
    small = browser.new_context(
        base_url=page.url.partition("#")[0], **PHONE,
    )  # fmt: skip
    phone = small.new_page()
    for name in ("overview", "pipeline", "sql", "time", "sources", "sinks", "settings"):
        phone.goto(f"/#/{name}")
        phone.get_by_role("heading", level=1).wait_for()
        phone.wait_for_timeout(1_500)
        wide = phone.evaluate(WIDE)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, (name, wide)
        if PICTURES and "RECLOCK_PHONE" in os.environ:
            phone.screenshot(path=Path(os.environ["RECLOCK_PHONE"]) / f"phone-{name}.png")
        if name == "time":
            if PICTURES:
                phone.screenshot(path=IMAGES / "console-phone.png")
            sizes = phone.locator("svg.remap text").evaluate_all(
                "found => found.map(t => t.getBoundingClientRect().height)"
            )
            assert min(sizes) >= 9, "the letters of the picture are too small"
    small.close()


@pytest.fixture(scope="module")
def broken(db: Database, topics: dict[str, str], kafka: RealKafka) -> Iterator[None]:
    """A view with errors, a source that stalls and a sink that has failed."""
    db.execute(BAD.format(broker=kafka.address, **topics))
    named = {item.name: item.id for item in db._core.world.catalog.items.values()}
    sink = next(sink for sink in db.facts.sinks() if sink.name == f"k{HOSTILE}")
    intake, exporter = db._core.intakes[named["payments"]], db._core.exporters[named[sink.name]]
    until = time.monotonic() + PATIENCE / 1_000
    while not exporter.recent and time.monotonic() < until:
        time.sleep(0.1)
    pull, intake.pull = intake.pull, lambda: False  # type: ignore[method-assign]
    intake.stall = SourceUnavailable(f"no broker {HOSTILE}", detail="refused", hint="start it")
    exporter.failure = SinkUnavailable(f"no topic {HOSTILE}", detail="gone", hint="create it")
    yield
    intake.stall, intake.pull = None, pull  # type: ignore[method-assign]
    exporter.failure = None


@pytest.mark.usefixtures("broken")
def test_problems_have_cards_and_hostile_names_are_shown(page: Page) -> None:
    page.goto("/#/overview")
    cards = page.locator("section.problem")
    source, sink = cards.filter(has_text="payments"), cards.filter(has_text=f"sink k{HOSTILE}")
    expect(source).to_contain_text("08006")
    expect(source).to_contain_text("What to do: start it")
    view = cards.filter(has=page.get_by_role("link", name=f"v{HOSTILE}", exact=True))
    expect(view).to_contain_text("22012")
    expect(view).to_contain_text("What to do: ")
    expect(sink).to_contain_text(f"no topic {HOSTILE}: gone")
    expect(sink).to_contain_text("What to do: create it")
    sink.get_by_role("link", name=f"k{HOSTILE}").click()
    expect(page.get_by_role("complementary", name=f"k{HOSTILE}")).to_be_visible()
    page.goto("/#/sinks")
    expect(page.get_by_role("cell", name=f"k{HOSTILE}")).to_be_visible()
    card = page.locator("section.card").filter(has=page.get_by_role("heading", name=f"k{HOSTILE}"))
    expect(card.get_by_role("table", name=f"Last transactions of k{HOSTILE}")).to_be_visible()
    expect(card).to_contain_text(f'CREATE SINK "k{HOSTILE}"')
    page.goto("/#/pipeline")
    names = "found => found.every(t => t.getBBox().x + t.getBBox().width <= 200)"
    assert page.locator("g.node text.t").evaluate_all(names), "a name is wider than its box"
    page.get_by_role("button", name=f"sink k{HOSTILE}, failed").click()
    expect(page.get_by_role("complementary", name=f"k{HOSTILE}")).to_contain_text("create it")
    page.goto("/#/time")
    expect(page.get_by_role("cell", name=f"sink k{HOSTILE}").first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(("scheme", "device"), [("light", "desktop"), ("dark", "phone")])
def test_axe_finds_nothing(page: Page, browser: Browser, scheme: str, device: str) -> None:
    """With problems, errors, skipped records and transactions on the pages."""
    context = browser.new_context(
        base_url=page.url.partition("#")[0], color_scheme=scheme, bypass_csp=True,
        reduced_motion="reduce", **DEVICES[device],
    )  # fmt: skip
    other, found = context.new_page(), {}
    for name in ("overview", "pipeline", f"pipeline/{quote(f'k{HOSTILE}')}", "sql", "time",
                 "sources", "sinks", "settings"):  # fmt: skip
        other.goto(f"/#/{name}")
        other.get_by_role("heading", level=1).wait_for()
        other.wait_for_timeout(800)
        if wrong := violations(other):
            found[name] = wrong
    context.close()
    assert found == {}
