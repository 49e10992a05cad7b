"""What the generated pages add to what they are made from: defaults, worked values, values of labels."""

from pathlib import Path

import pytest

import tidings
from tests.decisions.test_retrying import WORKED
from tidings.db.accounts import ALL_ROLES
from tidings.processes import retry_policy, task_limits
from tidings.reference import PAGES, stale_pages
from tidings.reference.command_line import leaves
from tidings.reference.metrics import VALUES, exported
from tidings.reference.retries import ATTEMPTS, DELIVERIES, RETRIES, TASKS
from tidings.settings import load_settings
from tidings.telemetry.log_lines import WORDING


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: make() for name, make in PAGES.items()}


def test_the_page_of_retries_has_the_defaults_and_the_values_that_were_worked_out(pages: dict[str, str]) -> None:
    """Ruling 4: "A table of worked values is in the reference and in a test"."""
    settings = load_settings(roles=ALL_ROLES, environ={})
    policy = retry_policy(settings)
    assert (policy.max_retry_limit, policy.backoff) == (ATTEMPTS, DELIVERIES)
    assert task_limits(settings).terms.backoff == TASKS
    assert tidings.NewTask("A", "b", {}).max_retries == RETRIES
    for id, attempts, seconds in WORKED:
        assert f"| {id} | {attempts} | {seconds:.6f} |" in pages["retries.md"]


def test_the_values_of_labels_are_those_that_are_there_from_the_beginning_and_more() -> None:
    made = {
        (name, labels[0]): {value for sample in metric.samples for value in sample.labels.values()}
        for name, metric, labels in exported()
        if labels
    }
    told = {key: values for key, values in made.items() if values}
    assert told.keys() == {("tidings_sagas_total", "status"), ("tidings_troubles_total", "kind")}
    assert all(values <= set(VALUES[key]) for key, values in told.items())


def test_nothing_that_can_be_called_asked_for_or_said_is_left_out(pages: dict[str, str]) -> None:
    for words, _ in leaves():
        assert f"tidings {' '.join(words)}" in pages["command-line.md"]
    for kind in WORDING:
        assert f"`{kind.__name__}`" in pages["notices.md"]
    for name in tidings.__all__:
        assert f"### tidings.{name}\n" in pages["python.md"]
    for name, _, _ in exported():
        assert f"| `{name}` |" in pages["metrics.md"]


def test_who_may_read_the_audit_log_stands_on_the_page_of_the_flow(pages: dict[str, str]) -> None:
    """Every role that acts for people adds to it; to read it is the observer's right alone."""
    _, _, observer = pages["flow.md"].partition("### observer\n")
    assert "- reads audit_log\n" in observer
    assert pages["flow.md"].count("reads audit_log") == 1


def test_a_page_that_is_out_of_step_is_named(tmp_path: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "metrics.md").write_text("old", "utf-8")
    (tmp_path / "flow.md").unlink()
    assert stale_pages(tmp_path) == ["flow.md", "metrics.md"]
