"""Pictures that many look at are made once."""

from __future__ import annotations

import asyncio
from time import sleep

import pytest

from reclock.server.http import looks
from reclock.server.http.looks import Looks


def test_many_who_look_at_once_see_one_picture() -> None:
    made = []

    def look() -> int:
        sleep(0.05)
        made.append(1)
        return len(made)

    async def run() -> set[bytes]:
        found = Looks()
        ask = [found.at("x", told=False, look=look) for _ in range(10)]
        return {picture.plain for picture in await asyncio.gather(*ask)}

    assert asyncio.run(run()) == {b"1"}


def test_it_is_made_again_when_it_is_old_and_is_another_for_who_may_see_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> list[bytes]:
        found, count = Looks(), iter(range(10))
        first = await found.at("x", told=False, look=lambda: next(count))
        told = await found.at("x", told=True, look=lambda: next(count))
        again = await found.at("x", told=False, look=lambda: next(count))
        monkeypatch.setattr(looks, "FRESH_SECONDS", -1.0)
        later = await found.at("x", told=False, look=lambda: next(count))
        return [p.plain for p in (first, told, again, later)]

    assert asyncio.run(run()) == [b"0", b"1", b"0", b"2"]


def test_one_of_something_else_is_old() -> None:
    async def run() -> list[bytes]:
        found, count, one, other = Looks(), iter(range(10)), object(), object()
        asked = [one, one, other, other, None]
        made = [await found.at("x", told=False, look=lambda: next(count), of=of) for of in asked]
        return [p.plain for p in made]

    assert asyncio.run(run()) == [b"0", b"0", b"1", b"1", b"2"]


def test_a_look_that_fails_is_not_kept() -> None:
    def fail() -> int:
        raise ValueError

    async def run() -> bytes:
        found = Looks()
        with pytest.raises(ValueError):  # noqa: PT011
            await found.at("x", told=False, look=fail)
        return (await found.at("x", told=False, look=lambda: 7)).plain

    assert asyncio.run(run()) == b"7"
