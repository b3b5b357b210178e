"""The console in a real Chromium, as a person uses it; names and data are shown, not run.

Chromium is Debian's, installed if the machine has none (``debian``).
tests/server/http/test_console_kafka.py clicks through a pipeline with Kafka.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import expect

from browser import Wrong, running, written
from reclock.errors import SourceUnavailable
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database
from reclock.testing.model_engine import ModelEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

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
    with Database(tmp_path_factory.mktemp("console") / "state", ModelEngine()) as made:
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
    context = browser.new_context(viewport={"width": 1360, "height": 860}, base_url=trusting.url)
    made, wrong = context.new_page(), Wrong()
    wrong.watch(made)
    yield made
    context.close()
    assert wrong == []


def test_overview_says_whether_all_is_well_and_what_to_do(page: Page, db: Database) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_text("All is well")).to_be_visible()
    source = next(i for i in db._core.world.catalog.items.values() if i.name == "transfers")
    intake = db._core.intakes[source.id]
    pull = intake.pull
    intake.pull = lambda: False  # type: ignore[method-assign]
    intake.stall = SourceUnavailable(f"no broker {SCRIPT}", hint="start the broker")
    try:
        expect(page.get_by_text("1 thing is not well")).to_be_visible()
        expect(page.get_by_text("What to do: start the broker")).to_be_visible()
        expect(page.get_by_text(SCRIPT)).to_be_visible()
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


def test_sql_shows_rows_errors_and_the_past(page: Page, db: Database) -> None:
    page.goto("/#/sql")
    page.wait_for_timeout(500)
    written(page, "SELECT * FROM accounts WHERE id = 1")
    expect(page.get_by_role("cell", name=SCRIPT)).to_be_visible()
    written(page, "SELECT ownr FROM accounts")
    expect(page.get_by_role("alert")).to_contain_text("42703")
    expect(page.get_by_role("alert")).to_contain_text("Hint: ")
    db.execute("ALTER TABLE accounts SET (RETAIN HISTORY FOR '10m')")
    written(page, "SELECT count(*) AS n FROM accounts")
    expect(page.get_by_role("cell", name="1", exact=True)).to_be_visible()
    page.get_by_text("AS OF: now").click()
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text(re.compile("AS OF: .* ago"))).to_be_visible()


def test_names_are_completed(page: Page) -> None:
    page.goto("/#/sql")
    page.wait_for_timeout(1_500)
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type("SELECT * FROM acc", delay=20)
    expect(page.get_by_role("option", name="accounts").first).to_be_visible()


def test_subscribe_is_live_and_what_changes_lights_up(page: Page, db: Database) -> None:
    page.goto("/#/sql")
    page.wait_for_timeout(500)
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
    page.goto("/#/sql")
    page.get_by_role("textbox", name="SQL").wait_for()
    written(page, "SUBSCRIBE nowhere")
    expect(page.get_by_role("alert")).to_contain_text("42P01")
    written(page, "SUBSCRIBE (SELECT 1 / (id - id) FROM accounts)")
    expect(page.get_by_role("alert")).to_contain_text("division by zero")


def test_a_subscribe_that_is_cut_off_goes_on(page: Page, db: Database) -> None:
    """As the network breaks: nothing is shown twice, and nothing is missing."""
    page.goto("/#/sql")
    page.get_by_role("textbox", name="SQL").wait_for()
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
        picture = page.get_by_role("img", name=re.compile("^transfers: 1 partitions"))
        expect(picture).to_be_visible()
        expect(picture.get_by_text("since")).to_be_visible()
        expect(picture.get_by_text("upper")).to_be_visible()
        expect(page.get_by_role("cell", name=re.compile("^subscribe")).first).to_be_visible()


def test_sources_sinks_settings_and_roles(page: Page) -> None:
    page.goto("/#/sources")
    expect(page.get_by_role("cell", name="transfers").first).to_be_visible()
    expect(page.get_by_role("table", name="Partitions")).to_be_visible()
    page.goto("/#/sinks")
    expect(page.get_by_text("There is no sink.")).to_be_visible()
    page.goto("/#/settings")
    expect(page.get_by_role("cell", name="timestamp_interval", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="reader")).to_be_visible()


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
    page.goto("/#/sql")
    page.wait_for_timeout(500)
    written(page, "SELECT * FROM total")
    expect(page.get_by_role("alert")).to_contain_text("42501")
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "horse" not in stored
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    context.close()


def test_passwords_in_statements_are_not_remembered(page: Page) -> None:
    page.goto("/#/sql")
    page.wait_for_timeout(500)
    written(page, "ALTER USER reader PASSWORD 'correct horse'")
    expect(page.get_by_text("ALTER ROLE").last).to_be_visible()
    page.goto("/#/time")
    expect(page.get_by_role("heading", name="Time", exact=True)).to_be_visible()
    assert "horse" not in page.evaluate("JSON.stringify({...sessionStorage})")


SHOWN = {
    "subscribe": "SUBSCRIBE (SELECT id, owner FROM accounts)",
    "rows": "SELECT * FROM reclock.objects",
    "error": "SELECT ownr FROM accounts",
}
"""What else of the SQL page axe looks at."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, trusting: HttpServer, scheme: str) -> None:
    context = browser.new_context(
        base_url=trusting.url, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce",
        viewport={"width": 1360, "height": 860},
    )  # fmt: skip
    page = context.new_page()
    found = {}
    for name in (*PAGES, "pipeline/total", "subscribe", "rows", "error"):
        page.goto(f"/#/{name if '/' in name or name in PAGES else 'sql'}")
        page.get_by_role("heading", level=1).wait_for()
        if name in SHOWN:
            page.get_by_role("textbox", name="SQL").wait_for()
            written(page, SHOWN[name])
        page.wait_for_timeout(900)
        wrong = Axe().run(page)["violations"]
        if wrong:
            found[name] = [(v["id"], [n["html"][:150] for n in v["nodes"]]) for v in wrong]
    context.close()
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_phone_nor_at_the_door(
    browser: Browser, trusting: HttpServer, server: HttpServer, scheme: str
) -> None:
    context = browser.new_context(
        color_scheme=scheme, bypass_csp=True, reduced_motion="reduce",
        viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True,
    )  # fmt: skip
    page = context.new_page()
    found = {}
    places = [f"{trusting.url}#/{name}" for name in ("pipeline/total", "sources", "settings")]
    for place in (*places, server.url):
        page.goto(place)
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_timeout(900)
        if wrong := Axe().run(page)["violations"]:
            found[place] = [(v["id"], [n["html"][:150] for n in v["nodes"]]) for v in wrong]
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
    context = browser.new_context(viewport={"width": 390, "height": 800}, base_url=trusting.url)
    page = context.new_page()
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
