"""AUCTION: the published mix to the event, ids that refer to what there is, hot ones hot."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.generator.auction import (
    BASE,
    EPOCH,
    FIRST_ID,
    HOT_CHANNELS,
    LEAD,
    PLACES,
    Auction,
)

RELATIONS = sorted(PLACES)
seeds = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 10**11)


def table(seed: int, relation: str, first: int, last: int) -> list[dict[str, Any]]:
    auction = Auction(seed, relation)
    offsets, columns, _ = auction.rows(first, last)
    names = ["offset", *(column.name for column in auction.columns)]
    values = [offsets.tolist(), *(column.to_pylist() for column in columns)]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


@given(st.integers(0, 10**13))
def test_the_mix_is_exact(offset: int) -> None:
    """Of any 50 events that follow one another 1, 3 and 46 are of each relation."""
    found = [
        Auction(0, relation).before(offset + EPOCH) - Auction(0, relation).before(offset)
        for relation in ("person", "auction", "bid")
    ]
    assert found == [1, 3, 46]


@given(epochs)
def test_relations_share_the_offsets(epoch: int) -> None:
    start = epoch * EPOCH
    found = []
    for relation in RELATIONS:
        each = Auction(0, relation)
        offsets, _, _ = each.rows(each.before(start), each.before(start + 2 * EPOCH))
        found.extend(offsets.tolist())
    assert sorted(found) == list(range(start, start + 2 * EPOCH))


@given(st.integers(0, 10**13), st.sampled_from(RELATIONS))
def test_before_counts_rows(offset: int, relation: str) -> None:
    each = Auction(0, relation)
    number = each.before(offset)
    offsets, _, _ = each.rows(max(number - 1, 0), number + 1)
    assert offsets[-1] >= offset
    assert number == 0 or offsets[0] < offset


@given(seeds, epochs)
def test_ids_refer_to_what_is_there_or_comes_soon(seed: int, epoch: int) -> None:
    people = Auction(seed, "person").rows(epoch, epoch + 1)
    auctions = Auction(seed, "auction").rows(3 * epoch, 3 * epoch + 3)
    bids = Auction(seed, "bid").rows(46 * epoch, 46 * epoch + 46)
    person = people.columns[0][0].as_py()
    assert person == FIRST_ID + epoch
    assert auctions.columns[0].to_pylist() == [FIRST_ID + 3 * epoch + n for n in range(3)]
    for sellers in (auctions.columns[7], bids.columns[1]):
        ids = sellers.to_numpy()
        assert (ids >= FIRST_ID).all()
        assert (ids <= person + LEAD).all()
        assert (ids > person - 1_000).all()
    ids = bids.columns[0].to_numpy()
    last = FIRST_ID + 3 * epoch + 2
    assert (ids >= max(FIRST_ID, last - 100)).all()
    assert (ids <= last + LEAD).all()


def test_hot_ones_are_hot() -> None:
    first = 46 * 1_000 * 100  # auctions 300 000 to 300 099 and people 100 000 to 100 099 are latest
    bids = table(3, "bid", first, first + 46 * 30)
    auctions = [bid["auction"] for bid in bids]
    hot = sum(auction == FIRST_ID + 300_000 for auction in auctions) / len(bids)
    assert 0.45 < hot < 0.55
    hot = sum(bid["bidder"] == FIRST_ID + 100_001 for bid in bids) / len(bids)
    assert 0.70 < hot < 0.80
    hot = sum(bid["channel"] in HOT_CHANNELS for bid in bids) / len(bids)
    assert 0.45 < hot < 0.55
    sold = table(3, "auction", 300_000, 300_300)
    hot = sum(each["seller"] == FIRST_ID + 100_000 for each in sold) / len(sold)
    assert 0.65 < hot < 0.85


def test_rows_look_like_the_published_ones() -> None:
    for person in table(1, "person", 0, 200):
        assert re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+", person["name"])
        assert re.fullmatch(r"[a-z]{3,6}@[a-z]{3,4}\.com", person["email_address"])
        assert re.fullmatch(r"\d{4}( \d{4}){3}", person["credit_card"])
        assert len(person["state"]) == 2
    for auction in table(1, "auction", 0, 200):
        assert auction["reserve"] > auction["initial_bid"] >= 100
        assert 10 <= auction["category"] < 15
        duration = auction["expires"] - auction["date_time"]
        assert datetime.timedelta(0) < duration <= datetime.timedelta(milliseconds=332)
    urls: dict[str, str] = {}
    for bid in table(1, "bid", 0, 2_000):
        url = r"https://www\.nexmark\.com(/[a-z]{3,5}){3}/item\.htm\?query=1(&channel_id=\d+)?"
        assert re.fullmatch(url, bid["url"])
        assert urls.setdefault(bid["channel"], bid["url"]) == bid["url"], "a channel has one"
    said = [("channel_id" in url) for name, url in urls.items() if name not in HOT_CHANNELS]
    assert 0.8 < np.mean(said) < 1
    assert not any("channel_id" in urls[name] for name in HOT_CHANNELS)


@pytest.mark.parametrize(("relation", "size"), [("person", 200), ("auction", 500)])
def test_rows_have_their_size(relation: str, size: int) -> None:
    _, columns, _ = Auction(1, relation).rows(0, 5_000)
    texts = [c for c in columns if str(c.type) == "string"]
    numbers = len([c for c in columns if str(c.type) == "int64"])
    bytes_per_row = sum(len("".join(text.to_pylist())) for text in texts) / 5_000 + 8 * numbers
    assert abs(bytes_per_row - size) < 0.05 * size


def test_event_time_is_the_events_number() -> None:
    base = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=BASE)  # noqa: DTZ001
    assert base == datetime.datetime(2015, 7, 15)  # noqa: DTZ001
    for relation in RELATIONS:
        for row in table(1, relation, 10**9, 10**9 + 60):
            assert row["date_time"] == base + row["offset"] * datetime.timedelta(microseconds=100)


KNOWN = {
    "person": {
        "offset": 50000000000,
        "id": 1000001000,
        "name": "Walter Jones",
        "email_address": "sdvl@lyj.com",
        "credit_card": "2307 0248 9405 9960",
        "city": "Redmond",
        "state": "WA",
        "date_time": "2015-09-10 20:53:20",
        "extra": "xavrazvlcyxzncnkhwvltwmhiejuuo",
    },
    "auction": {
        "offset": 16666666652,
        "id": 1000001000,
        "item_name": "poiidycvfswtlzi",
        "description": "xgiwpntlvs psfqzkinxlkhlvppuxl",
        "initial_bid": 9260,
        "reserve": 14269,
        "date_time": "2015-08-03 06:57:46.665200",
        "expires": "2015-08-03 06:57:46.721200",
        "seller": 333334300,
        "category": 13,
        "extra": "rrpqkqfafcnwcymcyquxeacwklsnxt",
    },
    "bid": {
        "offset": 1086956524,
        "auction": 65218300,
        "bidder": 21740101,
        "price": 619608,
        "channel": "channel-5819",
        "url": "https://www.nexmark.com/fciw/q",
        "date_time": "2015-07-16 06:11:35.652400",
        "extra": "xrnqdxixvsrbumptobnxzzduletjuj",
    },
}


def test_known_answers() -> None:
    for relation, expected in KNOWN.items():
        (row,) = table(7, relation, 10**9, 10**9 + 1)
        assert expected == {
            name: value if isinstance(value, int) else str(value)[:30]
            for name, value in row.items()
        }
