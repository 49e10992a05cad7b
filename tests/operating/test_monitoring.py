"""Rules and dashboard ask for metrics that are exported; every alert can fire and has its entry in the runbook."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

from tests.support.database import Database
from tidings.reference.metrics import STAGES, VALUES, exported
from tidings.roles.observer.depths import DepthObserver

OPERATING = Path(__file__).parents[2] / "docs" / "operating"
RULES = OPERATING / "prometheus" / "tidings.rules.yml"
DASHBOARD = OPERATING / "grafana" / "tidings.json"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is missing: apt-get install prometheus (scripts/install-servers)"
)


def series() -> set[str]:
    """Every name that a query may use."""
    names: set[str] = set()
    for name, metric, _ in exported():
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if metric.type == "histogram" else {name}
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return names | {sample.name for metric in registry.collect() for sample in metric.samples}


def asked_for(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:tidings|process)_\w+", re.sub(r'"[^"]*"', "", expression)))


def labels_asked_for(expression: str) -> list[tuple[str, str, str]]:
    """Metric, label and value of each condition that names values."""
    found = []
    for metric, inside in re.findall(r"\b(tidings_\w+)\{([^}]*)\}", expression):
        for label, values in re.findall(r'(\w+)!?=~?"([^"]*)"', inside):
            found += [(metric, label, value) for value in values.split("|")]
    return found


def alerts() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in alerts().values()), *queries()])
def test_every_metric_and_every_label_that_is_asked_for_exists(expression: str) -> None:
    labels = {name: set(labels) for name, _, labels in exported()}
    known = {**{("tidings_depth", "stage"): (*STAGES,), ("tidings_oldest_seconds", "stage"): (*STAGES,)}, **VALUES}
    assert asked_for(expression) - series() == set()
    for metric, label, value in labels_asked_for(expression):
        assert label in labels[metric]
        assert value in known.get((metric, label), (value,))


def test_no_metric_is_shown_to_nobody() -> None:
    """What is counted stands on the dashboard or in a rule; these are for whoever looks closer."""
    used = {name for text in (*queries(), *(rule["expr"] for rule in alerts().values())) for name in asked_for(text)}
    apart = {
        "tidings_depth_counted_to",
        "tidings_jobs_given_back_total",
        "tidings_jobs_leased_total",
        "tidings_results_ignored_total",
        "tidings_task_races_lost_total",
        "tidings_tasks_claimed_total",
        "tidings_tasks_given_back_total",
    }
    names = {name for name, _, _ in exported()}
    assert {name for name in names if not any(one.startswith(name) for one in used)} == apart


@needs_promtool
@pytest.mark.parametrize(
    ("verb", "file"),
    [
        (("check", "rules"), RULES),
        (("check", "config"), OPERATING / "prometheus" / "prometheus.yml"),
        (("test", "rules"), Path(__file__).parent / "alerts.test.yml"),
    ],
    ids=["rules", "config", "alerts"],
)
def test_prometheus_takes_the_files_and_every_alert_fires_when_it_should(verb: tuple[str, str], file: Path) -> None:
    ended = subprocess.run([str(PROMTOOL), *verb, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_alert_is_tried() -> None:
    tried = yaml.safe_load((Path(__file__).parent / "alerts.test.yml").read_text("utf-8"))["tests"]
    fired = [case["alertname"] for one in tried for case in one["alert_rule_test"] if case.get("exp_alerts")]
    silent = [case["alertname"] for one in tried for case in one["alert_rule_test"] if not case.get("exp_alerts")]
    assert sorted(fired) == sorted(silent) == sorted(alerts())


def test_every_alert_has_its_entry_in_the_runbook_and_leads_there() -> None:
    entries = re.findall(r"^## (Tidings\w+)$", (OPERATING / "runbook.md").read_text("utf-8"), re.MULTILINE)
    assert entries == [*alerts()]
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/operating/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_dashboard_is_whole() -> None:
    board = json.loads(DASHBOARD.read_text("utf-8"))
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"


async def test_the_stages_of_the_reference_are_those_that_are_counted(engine: Database) -> None:
    depths = await DepthObserver.step(await engine.open("observer"), DepthObserver.depths)
    assert {*depths.queues} == {*STAGES}
