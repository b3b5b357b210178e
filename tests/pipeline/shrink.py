"""The smallest case that still fails: leave out actions, views and feeds while it does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .history import Case


def shrunk(case: Case, fails: Callable[[Case], bool], patience: int = 150) -> Case:
    """Return a case that fails and of which no part can go; ``patience`` ends the search."""
    tried = 0
    again = True
    while again:
        again = False
        for smaller in _smaller(case):
            tried += 1
            if tried > patience:
                return case
            if fails(smaller):
                case, again = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    size = len(case.actions)
    while size:
        for first in range(0, len(case.actions), size):
            yield replace(case, actions=case.actions[:first] + case.actions[first + size :])
        size //= 2
    for number in range(len(case.views)):
        yield replace(case, views=case.views[:number] + case.views[number + 1 :])
    for number in range(len(case.feeds) if len(case.feeds) > 1 else 0):
        yield _without(case, number)
    for number, spec in enumerate(case.feeds):
        for name, plain in (
            ("before", 0),
            ("options", []),
            ("include", []),
            ("bad", 0),
            ("grows", False),
        ):
            if spec.get(name):
                feeds = list(case.feeds)
                feeds[number] = {**spec, name: plain}
                yield replace(case, feeds=feeds)


def _without(case: Case, gone: int) -> Case:
    def moved(view: list[Any]) -> list[Any]:
        return [view[0], *(n - (n > gone) for n in view[1:])]

    feeds = case.feeds[:gone] + case.feeds[gone + 1 :]
    return replace(case, feeds=feeds, views=[moved(v) for v in case.views if gone not in v[1:]])
