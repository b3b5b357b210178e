"""Dashboards and alerts name metrics that there are, in PromQL that parses."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from debian import program
from reclock.server.http.metrics import FAMILIES

ROOT = Path(__file__).parents[1]
GRAFANA = json.loads((ROOT / "dashboards" / "grafana.json").read_text())
ALERTS = yaml.safe_load((ROOT / "dashboards" / "alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
PANELS = [panel for panel in GRAFANA["panels"] if panel["type"] != "row"]
EXPRESSIONS = [t["expr"] for p in PANELS for t in p["targets"]]
EXPRESSIONS += [rule["expr"] for rule in RULES]
KNOWN = {f.name: set(f.labels) for f in FAMILIES} | {
    f"{f.name}_{end}": set(f.labels) | ({"le"} if end == "bucket" else set())
    for f in FAMILIES
    if f.kind == "histogram"
    for end in ("bucket", "sum", "count")
}
OF_THE_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total",
                  "process_open_fds", "process_max_fds"}  # fmt: skip
OTHERS = {"up", *OF_THE_PROCESS}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_parses_and_names_metrics_and_labels_that_there_are(expression: str) -> None:
    plain = expression.replace("$__rate_interval", "5m")
    promql_parser.parse(plain)
    found = re.findall(r"\b(reclock_\w+|up|process_\w+)(?:\{([^}]*)\})?", plain)
    assert found
    for name, matchers in found:
        assert name in KNOWN or name in OTHERS, name
        labels = set(re.findall(r"(\w+)\s*[=!]", matchers)) - {"instance", "job"}
        assert labels <= KNOWN.get(name, set()), (name, labels)


def test_legends_and_texts_name_labels_that_there_are() -> None:
    labels = {label for found in KNOWN.values() for label in found} | {"instance"}
    texts = [t["legendFormat"] for p in PANELS for t in p["targets"]]
    assert set(re.findall(r"{{(\w+)}}", " ".join(texts))) <= labels
    texts = [text for rule in RULES for text in rule["annotations"].values()]
    assert set(re.findall(r"\$labels\.(\w+)", " ".join(texts))) <= labels


def test_what_must_not_go_unnoticed_has_an_alert() -> None:
    text = " ".join(rule["expr"] for rule in RULES)
    for metric in ("source_lag_records", "timeline_lag_seconds", "source_state", "sink_state",
                   "state_disk_free_bytes", "expiration_remaining_seconds", "failed",
                   "object_errors", "timeline_failing"):  # fmt: skip
        assert f"reclock_{metric}" in text
    for rule in RULES:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]


def test_every_metric_has_a_panel() -> None:
    shown = " ".join(t["expr"] for p in PANELS for t in p["targets"])
    names = {f.name for f in FAMILIES} | OF_THE_PROCESS
    assert [name for name in names if not re.search(rf"\b{name}(_bucket)?\b", shown)] == []


def test_metrics_of_the_process_without_a_panel_have_a_reason() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").split("## Of the process")[1]
    listed = {name for name in re.findall(r"`(\w+)`", text) if "_" in name}
    assert listed >= OF_THE_PROCESS
    assert "others have no panel" in text


def test_panels_stand_under_their_subject() -> None:
    """Rows have a title, and no two panels overlap."""
    assert GRAFANA["panels"][0]["type"] == "row"
    taken: set[tuple[int, int]] = set()
    for panel in GRAFANA["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def lost(given: Any, kept: Any, path: str = "") -> list[str]:
    """Return what of JSON is not in another, or is something else there."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [x for key in given for x in lost(given[key], kept.get(key), f"{path}/{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [x for n, (a, b) in pairs for x in lost(a, b, f"{path}/{n}")]
    return [] if given == kept and type(given) is type(kept) else [path]


def read_by_grafana(dashboard: Any) -> Any:
    """Return of a dashboard what the types have that Grafana generates of its schemas."""
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))


def test_grafana_knows_every_property() -> None:
    assert lost(GRAFANA, read_by_grafana(GRAFANA)) == []


def test_a_property_that_grafana_does_not_know_is_noticed() -> None:
    wrong = copy.deepcopy(GRAFANA)
    wrong["panels"][1]["fieldConfig"]["defaults"]["custom"]["lineWitdh"] = 2
    wrong["panels"][2]["targets"][0]["legend"] = "x"
    wrong["refersh"] = "1s"
    assert sorted(lost(wrong, read_by_grafana(wrong))) == [
        "/panels/1/fieldConfig/defaults/custom/lineWitdh", "/panels/2/targets/0/legend", "/refersh"
    ]  # fmt: skip


def test_panels_have_numbers_and_places_of_their_own() -> None:
    panels = GRAFANA["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}
    assert len(places) == len(panels)


@pytest.mark.parametrize(("what", "file"), [("check", "alerts.yml"), ("test", "alerts_test.yml")])
def test_promtool_takes_the_alerts_and_they_fire_when_they_should(what: str, file: str) -> None:
    promtool = program("promtool", "prometheus")
    done = subprocess.run(
        [promtool, what, "rules", file],
        cwd=ROOT / "dashboards",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
