"""A real Chromium for tests, and what a page in it complains of."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from debian import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1360, "height": 860}}
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True,
    "device_scale_factor": 2,
}  # fmt: skip
DEVICES: Final = {"desktop": DESKTOP, "phone": PHONE}
RULES: Final = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
"""All that axe checks by itself, and whether fingers can hit what they should."""


@contextmanager
def running() -> Iterator[Browser]:
    """Run a browser inside the block."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


class Wrong(list[str]):
    """What a page complains of, but for statements that were refused; and what it fetches."""

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.append(text)

    def watch(self, page: Page) -> None:
        """Listen to a page."""
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on(
            "dialog", lambda dialog: (self.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.on("console", lambda m: self._hear(m.type, m.text))
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith(("http://127.0.0.1", "data:")) else self.append(r.url)
            ),
        )


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe finds that keeps people from using a page: rule and places."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [(v["id"], [node["html"][:160] for node in v["nodes"]]) for v in found]


def written(page: Page, text: str) -> None:
    """Write a query into the console's editor and run it."""
    page.get_by_role("textbox", name="SQL").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
