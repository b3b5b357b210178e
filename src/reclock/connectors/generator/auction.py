"""``LOAD GENERATOR AUCTION``: the auction house of the Nexmark benchmark.

One world of events per seed; a source has one of its three relations, and their offsets
are the world's. Of every 50 events the first is a new person, then come 3 auctions and 46
bids, which is the published mix. The published rules, with their constants:

* ids count up from 1000; a bid is for an auction, and by a person, of lately or of very
  soon (up to 10 ids ahead: as if events had overtaken each other);
* every second bid is for the *hot* auction, the first of the last hundred; three of four
  bids are by the hot bidder, three of four auctions by the hot seller;
* 100 auctions are under way on average; prices are even over their logarithm; half of the
  bids come through four large channels, the others through 10 000 small ones;
* an event each 100 µs from 2015-07-15 on; rows have about 200, 500 and 100 bytes.

Words and numbers are reclock's own: the same model, not the same bytes, as other
generators. Tests, with the rules as properties and known answers:
tests/connectors/generator/test_auction.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.generator.draw import Draws
from reclock.connectors.generator.model import Column, Rows, inserted, instants
from reclock.connectors.generator.text import chosen, padding, prices, short_words
from reclock.sql.types import BIGINT, TEXT, TIMESTAMP

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPOCH: Final = 50
PLACES: Final = {"person": (0, 1), "auction": (1, 3), "bid": (4, 46)}
"""Of every epoch: where the events of a relation begin, and how many there are."""

FIRST_ID: Final = 1_000
FIRST_CATEGORY: Final = 10
CATEGORIES: Final = 5
LEAD: Final = 10
HOT: Final = 100
IN_FLIGHT: Final = 100
ACTIVE_PEOPLE: Final = 1_000

BASE: Final = 1_436_918_400_000_000  # 2015-07-15 00:00:00, in microseconds
STEP: Final = 100
_HORIZON_MS: Final = IN_FLIGHT * EPOCH // PLACES["auction"][1] * STEP // 1_000

_FIRST_NAMES: Final = (
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
)  # fmt: skip
_LAST_NAMES: Final = (
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
)  # fmt: skip
_CITIES: Final = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle",
    "Kent", "Cheyenne",
)  # fmt: skip
_STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS: Final = 10_000

_TYPES: Final = {"date_time": TIMESTAMP, "expires": TIMESTAMP}
_NUMBERS: Final = (
    "id", "initial_bid", "reserve", "seller", "category", "auction", "bidder", "price",
)  # fmt: skip
FIELDS: Final = {
    "person": (
        "id", "name", "email_address", "credit_card", "city", "state", "date_time", "extra",
    ),
    "auction": (
        "id", "item_name", "description", "initial_bid", "reserve", "date_time", "expires",
        "seller", "category", "extra",
    ),
    "bid": ("auction", "bidder", "price", "channel", "url", "date_time", "extra"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Auction:
    """One relation of a seed's world: ``person``, ``auction`` or ``bid``."""

    seed: int
    relation: str = "bid"

    @property
    def columns(self) -> tuple[Column, ...]:
        """What a row of the relation consists of."""
        return tuple(
            Column(name, _TYPES.get(name, BIGINT if name in _NUMBERS else TEXT))
            for name in FIELDS[self.relation]
        )

    def before(self, offset: int) -> int:
        """Return how many of the events before ``offset`` are of this relation.

        >>> [Auction(0, "auction").before(offset) for offset in (0, 1, 2, 50, 54)]
        [0, 0, 1, 3, 6]
        """
        first, count = PLACES[self.relation]
        epoch, place = divmod(offset, EPOCH)
        return epoch * count + min(max(place - first, 0), count)

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the relation, by their number in it."""
        place, count = PLACES[self.relation]
        numbers = np.arange(first, last, dtype=np.int64)
        events = numbers // count * EPOCH + place + numbers % count
        draws = Draws(self.seed)
        match self.relation:
            case "person":
                columns = _person(draws, events)
            case "auction":
                columns = _auction(draws, events)
            case _:
                columns = _bid(draws, events)
        return Rows(events, columns, inserted(len(events)))


def _person(draws: Draws, events: NDArray[np.int64]) -> tuple[pa.Array, ...]:
    first = chosen(draws, "person/first name", events, _FIRST_NAMES)
    last = chosen(draws, "person/last name", events, _LAST_NAMES)
    user = short_words(draws, "person/user", events, 7)
    host = short_words(draws, "person/host", events, 5)
    digits = [draws.below(f"person/card/{group}", events, 10_000) for group in range(4)]
    groups = [pc.utf8_lpad(pa.array(part).cast(pa.string()), 4, "0") for part in digits]
    texts = (
        pc.binary_join_element_wise(first, last, " "),
        pc.binary_join_element_wise(user, "@", host, ".com", ""),
        pc.binary_join_element_wise(*groups, " "),
        chosen(draws, "person/city", events, _CITIES),
        chosen(draws, "person/state", events, _STATES),
    )
    return (
        pa.array(FIRST_ID + _last_person(events)),
        *texts,
        instants(BASE, STEP, events),
        padding(draws, "person/extra", events, 200 - 8 - _sizes(*texts)),
    )


def _auction(draws: Draws, events: NDArray[np.int64]) -> tuple[pa.Array, ...]:
    texts = (
        short_words(draws, "auction/name", events, 20, spaced=True),
        short_words(draws, "auction/description", events, 100, spaced=True),
    )
    initial = prices(draws, "auction/initial bid", events)
    length_ms = 1 + draws.below("auction/length", events, 2 * _HORIZON_MS)
    hot = draws.below("auction/hot", events, 4) > 0
    seller = np.where(
        hot, _last_person(events) // HOT * HOT, _any_person(draws, "auction/seller", events)
    )
    category = draws.below("auction/category", events, CATEGORIES)
    return (
        pa.array(FIRST_ID + _last_auction(events)),
        *texts,
        pa.array(initial),
        pa.array(initial + prices(draws, "auction/reserve", events)),
        instants(BASE, STEP, events),
        instants(BASE, 1, STEP * events + 1_000 * length_ms),
        pa.array(FIRST_ID + seller),
        pa.array(FIRST_CATEGORY + category),
        padding(draws, "auction/extra", events, 500 - 6 * 8 - _sizes(*texts)),
    )


def _bid(draws: Draws, events: NDArray[np.int64]) -> tuple[pa.Array, ...]:
    hot_auction = draws.below("bid/hot auction", events, 2) > 0
    auction = np.where(
        hot_auction, _last_auction(events) // HOT * HOT, _any_auction(draws, "bid/auction", events)
    )
    hot_bidder = draws.below("bid/hot bidder", events, 4) > 0
    # The second of a hundred, so that hot bidders are not hot sellers.
    bidder = np.where(
        hot_bidder, _last_person(events) // HOT * HOT + 1, _any_person(draws, "bid/bidder", events)
    )
    large = draws.below("bid/large channel", events, 2) > 0
    channel = np.where(
        large,
        draws.below("bid/channel of four", events, len(HOT_CHANNELS)),
        len(HOT_CHANNELS) + draws.below("bid/channel", events, _CHANNELS),
    )
    names, urls = _channels(draws)
    return (
        pa.array(FIRST_ID + auction),
        pa.array(FIRST_ID + bidder),
        pa.array(prices(draws, "bid/price", events)),
        names.take(pa.array(channel)),
        urls.take(pa.array(channel)),
        instants(BASE, STEP, events),
        padding(draws, "bid/extra", events, np.full(len(events), 100 - 4 * 8)),
    )


def _last_person(events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many people came before the latest one, who may be the event itself."""
    return events // EPOCH


def _last_auction(events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same of auctions, for events that are auctions or bids."""
    first, count = PLACES["auction"]
    return events // EPOCH * count + np.minimum(events % EPOCH - first, count - 1)


def _any_person(draws: Draws, field: str, events: NDArray[np.int64]) -> NDArray[np.int64]:
    people = _last_person(events) + 1
    active = np.minimum(people, ACTIVE_PEOPLE)
    return people - active + draws.below(field, events, active + LEAD)


def _any_auction(draws: Draws, field: str, events: NDArray[np.int64]) -> NDArray[np.int64]:
    last = _last_auction(events)
    oldest = np.maximum(last - IN_FLIGHT, 0)
    return oldest + draws.below(field, events, last - oldest + 1 + LEAD)


def _sizes(*texts: pa.Array) -> NDArray[np.int64]:
    """Return how many bytes the texts of each row have."""
    sizes: NDArray[np.int64] = np.sum([pc.binary_length(text) for text in texts], axis=0)
    return sizes


@lru_cache(maxsize=8)
def _channels(draws: Draws) -> tuple[pa.Array, pa.Array]:
    """Return the names and the addresses of all channels; nine of ten small ones say their id."""
    numbers = np.arange(len(HOT_CHANNELS) + _CHANNELS, dtype=np.int64)
    small = numbers >= len(HOT_CHANNELS)
    names = [*HOT_CHANNELS, *(f"channel-{n}" for n in range(_CHANNELS))]
    path = [short_words(draws, f"channel/path/{part}", numbers, 6) for part in range(3)]
    says = small & (draws.below("channel/says", numbers, 10) > 0)
    id_text = pa.array(draws.below("channel/id", numbers, 1 << 31)).cast(pa.string())
    tail = pc.binary_join_element_wise("&channel_id=", id_text, "")
    urls = pc.binary_join_element_wise("https://www.nexmark.com", *path, "item.htm?query=1", "/")
    shown = pc.if_else(pa.array(says), tail, "")
    return pa.array(names, pa.string()), pc.binary_join_element_wise(urls, shown, "")
