"""The console in a real Chromium, as a person uses it; names and data are shown, not run.

Chromium is Debian's, installed if the machine has none (``debian``).
tests/server/http/test_console_kafka.py clicks through a pipeline with Kafka.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from browser import DESKTOP, DEVICES, PHONE, Wrong, running, violations, written
from engines.local_engine import LocalEngine
from reclock.errors import SourceUnavailable
from reclock.ids import ObjectId
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database
from reclock.session.facts import Moving, ObjectFacts
from reclock.session.source_facts import Binding, SourceFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, Route

STATIC = Path(__file__).parents[3] / "src/reclock/server/http/static"
HOSTILE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>'\"&{{7*7}}"
CUT = """() => {
  const real = window.fetch;
  window.fetch = async (path, options) => {
    if (path !== "/api/subscribe") return real(path, options);
    const breaking = new AbortController();
    options.signal.addEventListener("abort", () => breaking.abort());
    window.cut = () => breaking.abort();
    return real(path, { ...options, signal: breaking.signal });
  };
}"""
PAGES = ("overview", "pipeline", "sql", "time", "sources", "sinks", "settings")
MADE = f"""
CREATE TABLE accounts (id INT PRIMARY KEY, owner TEXT, balance BIGINT);
CREATE SOURCE transfers FROM LOAD GENERATOR BANK (SEED 7, ACCOUNTS 20);
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total, count(*) AS n FROM accounts;
CREATE TABLE "t{HOSTILE}" ("c{HOSTILE}" TEXT);
CREATE SOURCE "s{HOSTILE}" FROM LOAD GENERATOR COUNTER;
CREATE USER "r{HOSTILE}";
CREATE MATERIALIZED VIEW "{HOSTILE}" AS SELECT count(*) AS n FROM transfers;
CREATE USER reader PASSWORD 'correct horse';
GRANT SELECT ON accounts TO reader;
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database(tmp_path_factory.mktemp("console") / "state", LocalEngine()) as made:
        made.execute(MADE)
        made.execute("INSERT INTO accounts VALUES (1, $1, 5)", [SCRIPT])
        yield made


@pytest.fixture(scope="module")
def trusting(db: Database) -> Iterator[HttpServer]:
    with HttpServer(db, HttpOptions(port=0, trusts_local=True)) as made:
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[HttpServer]:
    with HttpServer(db, HttpOptions(port=0)) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running() as made:
        yield made


@pytest.fixture
def page(browser: Browser, trusting: HttpServer) -> Iterator[Page]:
    context = browser.new_context(base_url=trusting.url, **DESKTOP)
    made, wrong = context.new_page(), Wrong()
    wrong.watch(made)
    yield made
    context.close()
    assert wrong == []


def opened(page: Page) -> None:
    """Open the SQL page."""
    page.goto("/#/sql")
    page.get_by_role("textbox", name="SQL").wait_for()


def slid(page: Page, time: int) -> None:
    """Move the slider to a time, once the page knows that it is there."""
    known = "time => Number(document.querySelector('input[type=range]').max) > time"
    page.wait_for_function(known, arg=time)
    page.get_by_role("slider").fill(str(time))


def log_in(page: Page, user: str, password: str) -> None:
    """Log in, and see the overview."""
    page.goto("/")
    page.get_by_label("Role").fill(user)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_overview_says_whether_all_is_well_and_what_to_do(page: Page, db: Database) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_text("All is well")).to_be_visible()
    source = next(i for i in db._core.world.catalog.items.values() if i.name == f"s{HOSTILE}")
    intake = db._core.intakes[source.id]
    pull = intake.pull
    intake.pull = lambda: False  # type: ignore[method-assign]
    intake.stall = SourceUnavailable(
        f"no broker {SCRIPT}", detail=f"it is {HOSTILE}", hint=f"start {HOSTILE}"
    )
    try:
        expect(page.get_by_text("1 thing is not well")).to_be_visible()
        card = page.locator("section.problem")
        expect(card.get_by_role("heading")).to_contain_text(f"source s{HOSTILE}")
        expect(card).to_contain_text("stalled")
        expect(card).to_contain_text(f"no broker {SCRIPT}: it is {HOSTILE} 08006")
        expect(card).to_contain_text(f"What to do: start {HOSTILE}")
        page.goto("/#/sources")
        expect(page.get_by_role("alert")).to_contain_text(f"s{HOSTILE}: no broker {SCRIPT}")
        page.goto("/#/pipeline")
        expect(page.get_by_role("button", name=f"source s{HOSTILE}, stalled")).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
        page.goto("/#/overview")
    finally:
        intake.stall = None
        intake.pull = pull  # type: ignore[method-assign]
    expect(page.get_by_text("All is well")).to_be_visible()
    expect(page.locator(".uplot canvas")).to_have_count(4)


def test_first_paint_of_the_overview(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text("All is well")).to_be_visible()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 5_000  # a second on an idle machine; others use this one


def test_the_pipeline_is_drawn_and_a_view_opens(page: Page) -> None:
    page.goto("/#/pipeline")
    expect(page.locator("g.node")).to_have_count(6)
    expect(page.locator("path.edge")).to_have_count(2)
    page.get_by_role("button", name="materialized view total").press("Enter")
    inside = page.get_by_role("complementary", name="total")
    expect(inside.get_by_text("Accumulate").first).to_be_visible()
    expect(inside.get_by_text("CREATE MATERIALIZED VIEW total")).to_be_visible()
    expect(inside.get_by_text("Reduce")).to_be_visible()
    page.get_by_role("button", name=f"materialized view {HOSTILE}").click()
    expect(page.get_by_role("complementary", name=HOSTILE)).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


def test_nodes_have_their_rates_and_lags(page: Page) -> None:
    page.goto("/#/pipeline")
    for name in ("source transfers, running", f"materialized view {HOSTILE}"):
        node = page.get_by_role("button", name=name)
        expect(node.locator("text.m")).to_have_text(re.compile(r"^[0-9.,]+/s · lag [0-9]+ m?s$"))
    rate = page.get_by_role("button", name="source transfers, running").locator("text.m")
    expect(rate).not_to_have_text(re.compile("^0/s"))
    table = page.get_by_role("button", name="table accounts").locator("text.m")
    expect(table).to_have_text(re.compile("^0/s · lag "))
    expect(page.locator("path.edge.flow")).to_have_count(1)  # of the one that moves


def test_operators_have_what_they_keep_and_take(page: Page) -> None:
    page.goto(f"/#/pipeline/{quote(HOSTILE)}")
    inside = page.get_by_role("complementary", name=HOSTILE)
    row = inside.get_by_role("row", name=re.compile("Accumulate"))
    expect(row.locator("td").nth(1)).to_have_text(re.compile("^[1-9]"))
    expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^[1-9][0-9.]* K?B$"))
    expect(row.locator("td").nth(3)).to_have_text(re.compile(r"^[0-9.]*[1-9][0-9]* (µs|ms)$"))
    where = "^Where it runs: [1-9][0-9,]* ticks? on the driver; times are averages of them"
    expect(inside.get_by_text(re.compile(where))).to_be_visible()
    expect(page.get_by_role("link", name="Spark’s pages")).to_have_count(0)


def test_operators_that_ran_on_spark_have_times_too_and_a_link(page: Page) -> None:
    """Of which tests/session/test_facts.py says how they are made."""

    def by_tasks(route: Route) -> None:
        found = route.fetch().json()
        found["ticks"] = {"driver": 5, "spark": 2}
        for nth, operator in enumerate(found["operators"]):
            operator["millis"] = {"driver": 0.25, "spark": 1_500 + nth}
        route.fulfill(json=found)

    def with_pages(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "spark_ui": "http://127.0.0.1:4040"})

    page.route("**/api/object?*", by_tasks)
    page.route("**/api/overview", with_pages)
    page.goto("/#/pipeline/total")
    inside = page.get_by_role("complementary", name="total")
    heads = inside.get_by_role("columnheader")
    expect(heads).to_have_text(["operator", "records", "bytes", "on the driver", "on Spark"])
    cells = inside.locator("tbody tr").first.locator("td")
    expect(cells.nth(3)).to_have_text("250 µs")
    expect(cells.nth(4)).to_have_text("1.5 s")
    expect(inside.get_by_text("5 ticks on the driver, 2 ticks on Spark")).to_be_visible()
    link = inside.get_by_role("link", name="Spark’s pages")
    expect(link).to_have_attribute("href", "http://127.0.0.1:4040")
    page.goto("/#/overview")
    expect(page.get_by_role("link", name="Spark’s pages")).to_be_visible()
    page.unroute_all(behavior="wait")


def test_sql_shows_rows_errors_and_the_past(page: Page, db: Database) -> None:
    opened(page)
    written(page, "SELECT * FROM accounts WHERE id = 1")
    expect(page.get_by_role("cell", name=SCRIPT)).to_be_visible()
    written(page, "SELECT ownr FROM accounts")
    expect(page.get_by_role("alert")).to_contain_text("42703")
    expect(page.get_by_role("alert")).to_contain_text("Hint: ")


@pytest.fixture(scope="module")
def aged(db: Database) -> int:
    """A time before the last row of a table that a plain view reads, and keeps nothing of."""
    db.execute("CREATE TABLE aged (n INT) WITH (retain_history = '10m')")
    db.execute("CREATE TABLE ag (n INT); CREATE VIEW aging AS SELECT n FROM aged")
    first = db.execute("INSERT INTO aged VALUES (1)").timestamp
    db.execute("INSERT INTO aged VALUES (2)")
    assert first is not None
    return int(first)


@pytest.mark.parametrize("text", [
    "SELECT n FROM aging", "-- the past\nSELECT n FROM aging;", "SELECT n FROM aging -- all of it",
])  # fmt: skip
def test_the_slider_gives_the_rows_of_then(page: Page, aged: int, text: str) -> None:
    opened(page)
    written(page, text)
    cells = page.get_by_role("region", name="Rows").locator("td")
    expect(cells).to_have_text(["1", "2"])
    expect(page.get_by_text("What aged keeps: from")).to_be_visible()  # not ag, which n is of too
    expect(page.get_by_text("AS OF: now")).to_be_visible()
    slid(page, aged)
    expect(cells).to_have_text(["1"])
    expect(page.get_by_text(re.compile("AS OF: .* ago"))).to_be_visible()
    page.get_by_role("button", name="Now").click()
    expect(cells).to_have_text(["1", "2"])


def test_the_slider_is_for_queries_alone(page: Page, db: Database, aged: int) -> None:
    """What has no past is not run now in silence; a SUBSCRIBE begins in the past."""
    opened(page)
    written(page, "SELECT n FROM aged")
    expect(page.get_by_role("cell", name="2")).to_be_visible()
    slid(page, aged)
    expect(page.get_by_role("cell", name="2")).to_have_count(0)
    written(page, "INSERT INTO aged VALUES (3)")
    expect(page.get_by_role("alert")).to_contain_text("0A000")
    assert db.execute("SELECT count(*) FROM aged").rows == [(2,)]
    written(page, "SUBSCRIBE aged ENVELOPE UPSERT (KEY (n))")
    changes = page.get_by_role("region", name="Rows as they change").locator("tbody tr")
    expect(changes).to_have_count(2)  # the second as a change of its own, later


def test_an_error_is_where_the_cursor_goes(page: Page) -> None:
    opened(page)
    written(page, "\n\n  SELECT '😀', ownr FROM accounts")
    expect(page.get_by_role("alert")).to_contain_text("42703")
    page.keyboard.insert_text("!")
    expect(page.get_by_role("textbox", name="SQL")).to_contain_text("'😀', !ownr")


def test_queries_are_remembered_until_one_logs_out(browser: Browser, server: HttpServer) -> None:
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    log_in(page, "reader", "correct horse")
    opened(page)
    for text in ("SELECT 1 AS first", "SELECT 2 AS second", "SELECT 1 AS first"):
        written(page, text)
        expect(page.get_by_role("columnheader", name=text.split()[-1])).to_be_visible()
    before = page.get_by_label("Queries before")
    expect(before.locator("option")).to_have_text(
        ["choose a query …", "SELECT 1 AS first", "SELECT 2 AS second"]
    )
    before.select_option("SELECT 2 AS second")
    expect(page.get_by_role("textbox", name="SQL")).to_have_text("SELECT 2 AS second")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("columnheader", name="second")).to_be_visible()
    page.reload()
    expect(before.locator("option").nth(1)).to_have_text("SELECT 2 AS second")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert page.evaluate("({...sessionStorage})") == {}
    context.close()


def test_sql_is_highlighted(page: Page) -> None:
    opened(page)
    written(page, "SELECT 'text', 12 AS n -- rest")
    found = page.locator(".cm-line span").evaluate_all(
        "found => Object.fromEntries(found.map(e => [e.textContent, getComputedStyle(e).color]))"
    )
    assert {"SELECT", "'text'", "12", "-- rest"} <= found.keys()
    assert len({found[piece] for piece in ("SELECT", "'text'", "12", "-- rest")}) == 4
    page.goto("/#/pipeline/total")
    code = page.get_by_role("complementary", name="total").locator(".code")
    expect(code.locator(".kw").first).to_have_text("CREATE")


def test_names_are_completed(page: Page) -> None:
    page.goto("/#/sql")
    page.wait_for_timeout(1_500)
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type("SELECT * FROM acc", delay=20)
    expect(page.get_by_role("option", name="accounts").first).to_be_visible()


def test_subscribe_is_live_and_what_changes_lights_up(page: Page, db: Database) -> None:
    opened(page)
    written(page, "SUBSCRIBE (SELECT id, balance FROM accounts)")
    expect(page.get_by_text("live: ")).to_be_visible()
    db.execute("INSERT INTO accounts VALUES (77, 'x', 123456)")
    expect(page.locator("tr.lit", has_text="123456")).to_be_visible()
    db.execute("UPDATE accounts SET balance = 654321 WHERE id = 77")
    changed = page.locator("tr.changed", has_text="77")
    expect(changed.locator("td.lit")).to_have_text(["654321"])  # the column that changed alone
    expect(page.get_by_text("123456")).not_to_be_visible()
    db.execute("DELETE FROM accounts WHERE id = 77")
    expect(page.locator("tr.gone", has_text="654321")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("live: ")).not_to_be_visible()


def test_a_subscribe_that_is_wrong_says_why(page: Page) -> None:
    opened(page)
    written(page, "SUBSCRIBE nowhere")
    expect(page.get_by_role("alert")).to_contain_text("42P01")
    written(page, "SUBSCRIBE (SELECT 1 / (id - id) FROM accounts)")
    expect(page.get_by_role("alert")).to_contain_text("division by zero")


def test_a_subscribe_that_is_cut_off_goes_on(page: Page, db: Database) -> None:
    """As the network breaks: nothing is shown twice, and nothing is missing."""
    opened(page)
    page.evaluate(CUT)
    written(page, "SUBSCRIBE (SELECT id % 1 AS one, balance FROM accounts)")
    expect(page.get_by_text("live: ")).to_be_visible()
    page.evaluate("window.cut()")
    expect(page.get_by_text("cut off, and coming back: ")).to_be_visible()
    db.execute("INSERT INTO accounts VALUES (78, 'y', 777)")
    row = page.locator("tbody tr", has_text="777")
    expect(row).to_have_count(1)
    expect(page.get_by_text("live: ")).to_be_visible()
    expect(page.get_by_text("×")).not_to_be_visible()
    db.execute("DELETE FROM accounts WHERE id = 78")
    expect(row).to_have_count(0)


def test_time_shows_the_remap_and_who_holds_what(page: Page, db: Database) -> None:
    with db.subscribe("SUBSCRIBE transfers"):
        page.goto("/#/time")
        picture = page.get_by_role("img", name=re.compile("^transfers: 1 partition;"))
        expect(picture).to_be_visible()
        expect(picture.get_by_text("since")).to_be_visible()
        expect(picture.get_by_text("upper")).to_be_visible()
        expect(page.get_by_role("cell", name=re.compile("^subscribe")).first).to_be_visible()


def test_sources_and_sinks(page: Page) -> None:
    page.goto("/#/sources")
    expect(page.get_by_role("cell", name="transfers").first).to_be_visible()
    expect(page.get_by_role("table", name="Partitions")).to_be_visible()
    page.goto("/#/sinks")
    expect(page.get_by_text("There is no sink.")).to_be_visible()


def test_the_log_of_a_database_has_places_and_bytes(
    page: Page, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, now, first = db.facts, db.now_ms, 97_500_059_720
    bank = SourceFacts(
        "bank", "running", 7, 70, 0, None, 900, 2, True, lag_bytes=5_000, is_log=True,
        partitions=(("0", first + 4_096, first + 9_096),),
    )  # fmt: skip
    copied = SourceFacts(
        "fresh", "loading", 7, 70, 0, None, None, 0, False, is_log=True,
        said="copying 3 tables: 10 of about 90 rows", partitions=(("0", 0, first),),
    )  # fmt: skip
    bound = [Binding(now - 2_000, {"0": first}), Binding(now - 1_000, {"0": first + 4_096})]
    moving, objects, bindings = facts.moving, facts.objects, facts.bindings

    def with_databases() -> Moving:
        found = moving()
        return found._replace(sources=[*found.sources, bank, copied])

    monkeypatch.setattr(facts, "moving", with_databases)
    kept = ObjectFacts("bank", "source", now - 3_000, now, 900, 7)
    monkeypatch.setattr(facts, "objects", lambda: [*objects(), kept])
    steps = ObjectId("u900"), "bank", lambda after: [b for b in bound if b.time > after]
    monkeypatch.setattr(facts, "bindings", lambda: [*bindings(), steps])

    page.goto("/#/sources")
    row = page.get_by_role("table", name="Sources").get_by_role("row", name=re.compile("^bank "))
    expect(row).to_contain_text("5.0 KB")
    log = page.get_by_role("table", name="Partitions").get_by_role("row", name="bank log")
    expect(log.locator("td")).to_have_text(["bank", "log", "16/B374E848", "16/B374FBD0", "5.0 KB"])
    fresh = page.get_by_role("table", name="Partitions").get_by_role("row", name="fresh log")
    expect(fresh.locator("td").last).to_have_text("–")  # nothing of it is bound yet
    expect(page.get_by_text("fresh: copying 3 tables: 10 of about 90 rows")).to_be_visible()
    page.goto("/#/time")
    picture = page.get_by_role("img", name=re.compile("^bank: 1 partition;"))
    expect(picture.get_by_text("16/B374E848").first).to_be_visible()
    expect(page.get_by_text("log: 16/B374E848")).to_be_visible()
    page.goto("/#/overview")
    expect(page.get_by_role("img", name=re.compile("^Log that waits, by database"))).to_be_visible()


def test_settings_are_found(page: Page) -> None:
    page.goto("/#/settings")
    rows = page.get_by_role("table", name="Settings").locator("tbody tr")
    row = rows.filter(has=page.get_by_role("cell", name="timestamp_interval", exact=True))
    expect(row).to_contain_text("1s")
    assert rows.count() > 5
    page.get_by_label("Find").fill("Stamp_Inter")
    expect(rows).to_have_count(1)
    expect(row).to_be_visible()
    page.get_by_label("Find").fill("no such setting")
    expect(page.get_by_text("No setting is like that.")).to_be_visible()


def test_roles_have_what_they_may(page: Page, db: Database) -> None:
    page.goto("/#/settings")
    rows = page.get_by_role("table", name="Roles").locator("tbody tr")
    reader = rows.filter(has=page.get_by_role("cell", name="reader", exact=True)).locator("td")
    expect(reader).to_have_text(["reader", "yes", "no", "SELECT on accounts"])
    other = rows.filter(has=page.get_by_role("cell", name=f"r{HOSTILE}", exact=True)).locator("td")
    expect(other).to_have_text([f"r{HOSTILE}", "yes", "no", "–"])
    db.execute(f'GRANT INSERT, SELECT ON "t{HOSTILE}" TO "r{HOSTILE}"')
    page.reload()
    expect(other.last).to_have_text(f"INSERT on t{HOSTILE}; SELECT on t{HOSTILE}")
    db.execute(f'REVOKE INSERT, SELECT ON "t{HOSTILE}" FROM "r{HOSTILE}"')


def test_light_and_dark_follow_the_system_until_one_chooses(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.get_by_role("button", name="Switch to dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch to light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")  # what is like the system follows it again
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("name", PAGES)
def test_hostile_names_are_shown_and_not_run(page: Page, name: str) -> None:
    """Of tables, columns, sources, views and roles; the page's fixture hears alerts and errors."""
    page.goto(f"/#/{name}")
    page.get_by_role("heading", level=1).wait_for()
    if name in {"pipeline", "time", "sources", "settings"}:
        expect(page.get_by_text("<img src").first).to_be_attached()
    if name == "sql":
        written(page, f"SELECT 1 AS \"{HOSTILE}\", '{HOSTILE}' AS b")
        expect(page.get_by_role("columnheader", name=HOSTILE)).to_be_visible()
        written(page, f'SELECT "{HOSTILE}" FROM accounts')
        expect(page.get_by_role("alert")).to_contain_text(HOSTILE)
    assert page.locator("img[src=x]").count() == 0


def test_a_link_that_is_no_link_is_a_page(page: Page) -> None:
    page.goto("/#/pipeline/%E0%A4%A")
    expect(page.get_by_role("heading", name="Pipeline")).to_be_visible()


def test_logging_in_and_out_and_rights(browser: Browser, server: HttpServer) -> None:
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Role").fill("reader")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("password authentication failed")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    opened(page)
    written(page, "SELECT * FROM total")
    expect(page.get_by_role("alert")).to_contain_text("42501")
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "horse" not in stored
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    context.close()


@pytest.mark.parametrize("text", [
    "ALTER USER reader PASSWORD 'correct horse'",
    "CREATE SOURCE nope FROM KAFKA BROKER 'localhost:1' TOPIC 'horse' FORMAT JSON"
    " WITH (registry.bearer.auth.token = 'correct horse')",
    "SELECT 'postgresql://correct:horse@host' AS address",
    "-- of a key: horse0horse0horse0horse0horse\nSELECT 1 AS one",
])  # fmt: skip
def test_what_may_be_secret_is_not_remembered(page: Page, text: str) -> None:
    """tests/server/http/test_text.py has many more."""
    opened(page)
    written(page, text)
    expect(page.get_by_text("Not kept in the history: it may have a secret.")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.get_by_role("link", name="Time").click()
    expect(page.get_by_role("heading", name="Time", exact=True)).to_be_visible()
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "horse" not in stored


SHOWN = {
    "subscribe": "SUBSCRIBE (SELECT id, owner FROM accounts)",
    "rows": "SELECT * FROM reclock.objects",
    "error": "SELECT ownr FROM accounts",
}
"""What else of the SQL page axe looks at."""


@pytest.mark.parametrize(("scheme", "device"), [("light", "phone"), ("dark", "desktop")])
def test_axe_finds_nothing(
    browser: Browser, trusting: HttpServer, server: HttpServer, scheme: str, device: str
) -> None:
    """Of a pipeline with problems, the other way round: test_console_kafka.py."""
    context = browser.new_context(
        base_url=trusting.url, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce",
        **DEVICES[device],
    )  # fmt: skip
    page = context.new_page()
    found = {}
    for name in (*PAGES, "pipeline/total", *SHOWN, server.url):
        page.goto(name if name == server.url else f"/#/{'sql' if name in SHOWN else name}")
        page.get_by_role("heading", level=1).wait_for()
        if name in SHOWN:
            page.get_by_role("textbox", name="SQL").wait_for()
            written(page, SHOWN[name])
        page.wait_for_timeout(500)
        if wrong := violations(page):
            found[name] = wrong
    context.close()
    assert found == {}


def test_the_keyboard_reaches_everything(page: Page) -> None:
    """Skip to the content, move through pages, look inside a view, and step through time."""
    page.goto("/")
    page.get_by_text("All is well").wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Pipeline")).to_be_focused()
    page.keyboard.press("Enter")
    view = page.get_by_role("button", name="materialized view total")
    view.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("complementary", name="total")).to_be_visible()
    page.goto("/#/time")
    picture = page.get_by_role("img", name=re.compile("^transfers: "))
    picture.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text(re.compile("^visible at [0-9]"))).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text(re.compile("^visible at [0-9]"))).not_to_be_visible()


def test_a_phone_scrolls_in_one_direction_only(browser: Browser, trusting: HttpServer) -> None:
    context = browser.new_context(base_url=trusting.url, **PHONE)
    page = context.new_page()
    opened(page)
    written(page, "SELECT 1 AS a_column_with_a_long_name, 2 AS another_with_a_long_name, 3 AS c")
    expect(page.get_by_label("Queries before").locator("option")).to_have_count(2)
    for name in PAGES:
        page.goto(f"/#/{name}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    context.close()


def test_all_of_it_is_small_and_from_here() -> None:
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 600_000
    for path in files:
        if path.parent.name != "vendor" and path.suffix in {".js", ".html", ".css"}:
            text = path.read_text()
            assert not re.search(r"https?://(?!www\.w3\.org)", text), path
            assert "innerHTML" not in text
