"""What people deploy with is well formed, and names options, ports and files that there are."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from reclock.cli.main import cli
from reclock.cli.options import SETTINGS
from reclock.server.http.openapi import PATHS
from reclock.sql.parse import parse_statements

ROOT = Path(__file__).parents[1]
KUBERNETES = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/reclock.yaml").read_text()))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
FLAGS = {flag for option in cli.commands["serve"].params for flag in option.opts}
VARIABLES = {setting.variable for setting in SETTINGS}


@pytest.mark.parametrize("found", KUBERNETES, ids=lambda o: o["kind"])
def test_objects_of_kubernetes_have_their_schema(found: dict) -> None:
    kubernetes_validate.validate(found, "1.31", strict=True)


def test_kubernetes_runs_one_process_that_is_probed() -> None:
    deployment = next(o for o in KUBERNETES if o["kind"] == "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]["type"]) == (1, "Recreate")
    pod = deployment["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in PATHS
    assert {a for a in container["args"] if a.startswith("--")} <= FLAGS
    mounts = {m["name"] for m in container["volumeMounts"]}
    assert mounts == {v["name"] for v in pod["volumes"]}


def test_compose_names_what_there_is() -> None:
    services = COMPOSE["services"]
    assert {"kafka", "postgres", "prometheus", "grafana", "reclock"} == services.keys()
    command = services["reclock"]["command"]
    assert {a for a in command if a.startswith("--")} <= FLAGS
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (ROOT / source).exists() if "/" in source else source in COMPOSE["volumes"]
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
        assert set(service.get("depends_on", ())) <= services.keys()
    assert len(parse_statements((ROOT / "deploy/compose/demo.sql").read_text())) == 5
    for name in ("prometheus", "grafana-source", "grafana-dashboards"):
        assert yaml.safe_load((ROOT / f"deploy/compose/{name}.yml").read_text())


def test_the_image_is_without_rights_and_has_a_health_check() -> None:
    text = (ROOT / "Dockerfile").read_text()
    words = re.findall(r"^([A-Z]+) ", text, re.M)
    assert set(words) <= {
        "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK",
        "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "/healthz" in text
    assert set(re.findall(r"\b(RECLOCK_\w+)=", text)) <= VARIABLES
    for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M):
        for name in line.split():
            assert (ROOT / name).exists(), name


def test_the_unit_of_systemd() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(ROOT / "deploy/reclock.service")
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    assert unit["Service"]["ExecStart"].endswith("reclock serve")
    assert set(re.findall(r"(RECLOCK_\w+)=", unit["Service"]["Environment"])) <= VARIABLES
