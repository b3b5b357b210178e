"""From a seed to a case."""

from __future__ import annotations

from random import Random
from typing import Any

from .history import Case
from .model import VIEWS

ACTIONS = {
    "send": 12, "tick": 12, "jump": 1, "restart": 2, "fail": 3, "late": 3, "index": 1,
    "settings": 2, "follow": 2, "sink": 1, "alter": 2,
    "outage": 1,
}  # fmt: skip
LENGTH = 30
BAD = 0.3
"""The share of bad records where histories are about them."""


def case_of(seed: int, length: int = LENGTH) -> Case:
    """Return the case of a seed."""
    rng = Random(seed)
    feeds = rng.choice([_system, _system, _given, _transactions, _faulty])(rng)
    views = [v for v in (_view(rng, feeds) for _ in range(rng.choice([1, 2, 2, 3]))) if v]
    names, weights = zip(*ACTIONS.items(), strict=True)
    if any(spec.get("bad") == BAD for spec in feeds):
        weights = tuple(5 if name == "alter" else n for name, n in ACTIONS.items())
    actions = [(n, rng.randrange(2**31)) for n in rng.choices(names, weights, k=length)]
    window = rng.choice(["1ms", "2s", "20s", "1h", "1h"])
    return Case(feeds, views, actions, {"logical_compaction_window": window})


def shaped(spec: dict[str, Any]) -> bool:
    """Return whether a feed's first columns are ``k`` and ``v``."""
    return spec["kind"] not in ("counter", "world") and spec.get("format") not in ("text", "bytes")


def _view(rng: Random, feeds: list[dict[str, Any]]) -> list[Any]:
    good = [n for n, spec in enumerate(feeds) if shaped(spec)]
    if not good:
        return ["all", rng.randrange(len(feeds))]
    kind = rng.choice(sorted(VIEWS))
    if kind == "all":
        return ["all", rng.randrange(len(feeds))]
    return [kind, *(rng.choice(good) for _ in range(VIEWS[kind].inputs))]


def _system(rng: Random) -> list[dict[str, Any]]:
    return [_epoch(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]


def _given(rng: Random) -> list[dict[str, Any]]:
    """Feeds of a timeline whose times they bring."""
    feeds: list[dict[str, Any]] = []
    kept = ["RETAIN HISTORY FOR '1 h'"] if rng.random() < 0.7 else []
    for _ in range(rng.choice([1, 2, 2])):
        parts = rng.randint(1, 3)
        if rng.random() < 0.5:
            via = rng.choice(["topic", "topic", "file"])
            feeds.append(_stated(rng, {"via": via, "partitions": parts, "options": kept}))
        else:
            envelope = rng.choice(["none", "upsert"])
            spec = {"kind": "using", "format": "json", "envelope": envelope, "partitions": parts}
            feeds.append({**spec, "options": kept, "bad": rng.choice([0, 0, 0.05])})
    if rng.random() < 0.5:
        feeds.append({"kind": "table", "keyed": False, "options": ["timeline = 'tl'", *kept]})
    return feeds


def _faulty(rng: Random) -> list[dict[str, Any]]:
    """Feeds of many records that do not decode, which is to matter, or not to."""
    feeds = []
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.choice(["topic", "topic", "topic", "file", "gzip directory"])
        spec = _read(rng, {"kind": kind, "before": rng.choice([0, 1, 4])})
        stop = rng.random() < 0.15
        feeds.append({**spec, "bad": BAD, "on_error": "stop" if stop else "report"})
    return feeds


def _stated(rng: Random, spec: dict[str, Any]) -> dict[str, Any]:
    """CDCv2, with messages that do not decode, in JSON or Avro, in partitions that become more."""
    avro = spec["via"] == "topic" and rng.random() < 0.4
    bad, grows = rng.choice([0, 0.1, 0.2]), rng.random() < 0.3
    form = "avro" if avro else "json"
    wrong = rng.choice([0, 0, 0, 0.1])
    made = {"kind": "stated", **spec, "format": form, "bad": bad, "grows": grows}
    return {**made, "contradicts": wrong}


def _transactions(rng: Random) -> list[dict[str, Any]]:
    """Tables of a captured database, whose transactions stay whole."""
    epoch = rng.random() < 0.5
    spec = {
        "kind": "transactional", "parts": rng.randint(1, 3), "epoch": epoch,
        "order": rng.choice(["strict", "complete"]), "options": ["RETAIN HISTORY FOR '1 h'"],
        "shuffled": rng.random() < 0.5,
    }  # fmt: skip
    spec |= {"bad": rng.choice([0, 0.1, 0.2]), "grows": rng.random() < 0.3}
    feeds: list[dict[str, Any]] = [{**spec, "table": t} for t in rng.choice(["a", "ab", "ab"])]
    return [*feeds, _epoch(rng)] if epoch and rng.random() < 0.4 else feeds


def _epoch(rng: Random) -> dict[str, Any]:
    kinds = ["topic"] * 8 + ["table"] * 3 + ["file", "directory", "counter", "stated", "parquet"]
    kind = rng.choice([*kinds, "gzip file", "gzip directory", "world"])
    spec: dict[str, Any] = {"kind": kind, "before": rng.choice([0, 0, 1, 4])}
    if kind == "table":
        return {**spec, "before": 0, "keyed": rng.random() < 0.5}
    if kind == "stated":
        return _stated(rng, {"epoch": True, "via": "topic", "partitions": 2, "before": 0})
    if kind == "world":
        world = rng.choice(["bank", "bank", "person", "auction", "bid"])
        return {**spec, "world": world, "events": rng.randint(1, 3)}
    if kind == "counter":
        return {**spec, "events": rng.randint(1, 4), "max": rng.choice([0, 3])}
    return _read(rng, spec)


def _read(rng: Random, spec: dict[str, Any]) -> dict[str, Any]:
    """Feeds whose records have positions."""
    options = []
    if rng.random() < 0.3:
        options.append(f"max_rows_per_tick = {rng.randint(1, 4)}")
    if rng.random() < 0.2:
        options.append("timestamp_interval = '3s'")
    if rng.random() < 0.2:
        options.append("retain_history = '9s'")
    spec["options"] = options
    spec["bad"] = rng.choice([0, 0, 0.05, 0.15])
    spec["on_error"] = rng.choice(["report", "report", "inline", "skip", "stop"])
    if spec["kind"] == "parquet":
        return {**spec, "on_error": rng.choice(["report", "stop"]), "format": "parquet"}
    if spec["kind"] != "topic":
        return {**spec, "format": rng.choice(["json", "csv", "text"])}
    envelope = rng.choice(["none", "none", "upsert", "upsert", "debezium", "unkeyed"])
    spec |= {"envelope": envelope, "partitions": rng.randint(1, 3), "format": "json"}
    if envelope == "none":
        if rng.random() < 0.15:
            options.append("isolation_level = 'read_uncommitted'")
        spec["format"] = rng.choice(["json", "json", "csv", "text", "bytes", "avro"])
    elif envelope == "upsert":
        spec["format"] = rng.choice(["json", "json", "csv", "avro"])
    else:
        spec["positions"] = rng.choice([None, "sequence", "file"])
        both = ["report", "stop"]
        spec["on_error"] = rng.choice(["report", "skip", *both] if envelope == "debezium" else both)
    if envelope != "unkeyed":
        every = [] if envelope == "upsert" else ["KEY"]
        every += ["PARTITION", "OFFSET", "TIMESTAMP"]
        spec["include"] = [w for w in every if rng.random() < 0.2]
    return spec
