"""What people deploy with is well formed, and names options, ports and files that there are."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from debian import program
from engines.model_engine import ModelEngine
from reclock.cli.main import cli
from reclock.cli.options import SETTINGS
from reclock.server.http.openapi import PATHS
from reclock.session.database import Database

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
    for name in ("prometheus", "grafana-source", "grafana-dashboards"):
        assert yaml.safe_load((ROOT / f"deploy/compose/{name}.yml").read_text())


def test_compose_has_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, "compose.yaml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_demonstration_can_be_applied_again_and_again(tmp_path: Path) -> None:
    """As ``serve --init`` does: what it plans is what it runs; the sink needs a Kafka."""
    text = (ROOT / "deploy/compose/demo.sql").read_text()
    with Database(tmp_path / "state", ModelEngine(), background=False) as db:
        first = db.plan(text)
        assert [step.action.value for step in first] == ["create"] * 5
        for step in first[:-1]:
            db.execute(step.parsed.text)
        again = [step.action.value for step in db.plan(text)]
        assert again == ["unchanged"] * 4 + ["create"]
        assert "'" not in "".join(step.title for step in first[:2]), "a password is logged"


def test_prometheus_takes_its_configuration() -> None:
    promtool = program("promtool", "prometheus")
    command = [promtool, "check", "config", "--syntax-only", "deploy/compose/prometheus.yml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_finds_nothing_in_the_image() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [str(hadolint), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


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


def test_systemd_takes_its_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd on this machine")
    text = (ROOT / "deploy/reclock.service").read_text()
    unit = tmp_path / "reclock.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M))
    done = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
