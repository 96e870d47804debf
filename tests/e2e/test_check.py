"""`stint check` and a start with a broken configuration: file, line and key are named."""

import hashlib
import os
import re
import subprocess

import pytest

from support.gateway import BINARY, ROOT, free_port, resources, run_stint

GOOD_RESOURCES = """\
_format_version: "1"
provider_keys:
  - display_name: mock
    adapter: openai
    secret: x
    api_base: http://127.0.0.1:9/v1
models:
  - display_name: chat
    model_name: mock-chat
    provider_key: mock
    rate_limit:
      rpm: 60
api_keys:
  - display_name: test
    key: sk-test
    allowed_models: ["*"]
rate_limit_policies:
  - name: daily
    group_by: [api_key]
    limits:
      - {unit: requests, quota: 100, per: 1d}
"""
GOOD_BOOTSTRAP = """\
proxy:
  addr: 127.0.0.1:PORT
observability:
  access_log: false
resources_file: resources.yaml
"""

# what is changed, into what, and the line and key that must be named
BROKEN_RESOURCES = {
    "misspelt key": ("rpm: 60", "rmp: 60", 12, "rmp"),
    "same key twice": ("rpm: 60", "rpm: 60\n      rpm: 61", 13, "rpm"),
    "wrong indent": ("    model_name: mock-chat", "      model_name: mock-chat", 9, ""),
    "number in quotes": ("rpm: 60", 'rpm: "60"', 12, "rpm"),
    "scientific": ("rpm: 60", "rpm: 1e3", 12, "rpm"),
    "octal": ("rpm: 60", "rpm: 010", 12, "rpm"),
    "with a unit": ("rpm: 60", "rpm: 10k", 12, "rpm"),
    "negative": ("rpm: 60", "rpm: -1", 12, "rpm"),
    "period without unit": ("per: 1d", "per: 86400", 21, "per"),
    "no period": ("per: 1d", "per: 0s", 21, "per"),
    "word for a truth value": ("key: sk-test", "key: sk-test\n    disabled: no", 16, "disabled"),
    "list for a text": ("display_name: chat", "display_name: [chat]", 8, "display_name"),
    "unknown unit": ("unit: requests", "unit: request", 21, "unit"),
    "name used twice": (
        "  - name: daily",
        "  - {name: daily, group_by: [team], limits: {rpm: 1}}\n  - name: daily",
        19,
        "name",
    ),
    "unset variable": ("secret: x", "secret: ${STINT_TEST_UNSET}", 5, "secret"),
    "alias": ("secret: x", "secret: &a x", 5, ""),
    "unknown attribute": ("group_by: [api_key]", "group_by: [api_kez]", 19, "group_by"),
    "no version": ('_format_version: "1"', '_format_version: "9"', 1, "_format_version"),
}
BROKEN_BOOTSTRAP = {
    "misspelt key": ("access_log", "acces_log", 4, "observability.acces_log"),
    "word for a truth value": ("false", "no", 4, "observability.access_log"),
    "no port": ("127.0.0.1:PORT", "localhost", 2, "proxy.addr"),
    "not available yet": (
        "resources_file",
        "decision: {http_addr: 127.0.0.1:1}\nresources_file",
        5,
        "decision.http_addr",
    ),
}


class Files:
    def __init__(self, folder):
        self.resources = folder / "resources.yaml"
        self.bootstrap = folder / "stint.yaml"
        self.resources.write_text(GOOD_RESOURCES)
        self.bootstrap.write_text(GOOD_BOOTSTRAP.replace("PORT", str(free_port())))

    def check(self, **options):
        return run_stint("check", "--config", self.bootstrap, **options)

    def assert_refused(self, file, line, key):
        """By `stint check`, and in the same words by a start."""
        checked = self.check()
        assert checked.returncode != 0
        assert checked.stdout == ""
        lines = [text for text in checked.stderr.splitlines() if f"{file}:{line}:" in text]
        assert lines, checked.stderr
        assert any(key in text for text in lines), checked.stderr
        started = run_stint("--config", self.bootstrap)
        assert started.returncode != 0
        for text in lines:
            assert text in started.stderr
        return lines


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def test_good_files(files):
    checked = files.check()
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("ok: ")


@pytest.mark.parametrize("case", BROKEN_RESOURCES)
def test_broken_resources(files, case):
    before, after, line, key = BROKEN_RESOURCES[case]
    assert GOOD_RESOURCES.count(before) == 1
    files.resources.write_text(GOOD_RESOURCES.replace(before, after))
    files.assert_refused(files.resources, line, key)


@pytest.mark.parametrize("case", BROKEN_BOOTSTRAP)
def test_broken_bootstrap(files, case):
    before, after, line, key = BROKEN_BOOTSTRAP[case]
    text = files.bootstrap.read_text()
    port = next(part for part in text.split() if part.startswith("127.0.0.1:"))
    text = text.replace(before.replace("127.0.0.1:PORT", port), after)
    files.bootstrap.write_text(text)
    files.assert_refused(files.bootstrap, line, key)


def test_the_nearest_name_is_told(files):
    files.resources.write_text(GOOD_RESOURCES.replace("allowed_models", "alowed_models"))
    (line, *_) = files.assert_refused(files.resources, 16, "alowed_models")
    assert "allowed_models" in line.replace("alowed_models", "")


def test_every_fault_of_both_files_is_told_at_once(files):
    files.resources.write_text(
        GOOD_RESOURCES.replace("rpm: 60", "rmp: 60").replace("per: 1d", "per: 1")
    )
    files.bootstrap.write_text(files.bootstrap.read_text().replace("access_log", "acces_log"))
    told = files.check().stderr
    for part in ("resources.yaml:12:", "resources.yaml:21:", "stint.yaml:4:"):
        assert part in told


def test_empty_and_missing_files(files, tmp_path):
    files.resources.write_text("")
    checked = files.check()
    assert checked.returncode != 0
    assert str(files.resources) in checked.stderr
    files.resources.unlink()
    checked = files.check()
    assert checked.returncode != 0
    assert str(files.resources) in checked.stderr
    missing = run_stint("check", "--config", tmp_path / "nothing.yaml")
    assert missing.returncode != 0
    assert "nothing.yaml" in missing.stderr


def test_secrets_are_not_shown(files):
    files.resources.write_text(
        GOOD_RESOURCES.replace("key: sk-test", "key: sk-very-secret\n    nonsense: 1")
    )
    checked = files.check()
    assert checked.returncode != 0
    assert "sk-very-secret" not in checked.stdout + checked.stderr


class TestEnvironment:
    def test_overrides_the_file(self, files):
        checked = files.check(environment={"STINT_PROXY__ADDR": "nonsense"})
        assert checked.returncode != 0
        assert "STINT_PROXY__ADDR" in checked.stderr

    def test_is_enough_by_itself(self, files):
        good = {"STINT_RESOURCES_FILE": str(files.resources), "STINT_PROXY__ADDR": "127.0.0.1:0"}
        checked = run_stint("check", environment=good)
        assert (checked.returncode, checked.stderr) == (0, "")

    def test_unknown_names(self, files):
        checked = files.check(environment={"STINT_PORT_80_TCP": "x", "STINT_PROXY__ADR": "y"})
        assert checked.returncode == 0
        assert "STINT_PROXY__ADR" in checked.stdout + checked.stderr
        assert "STINT_PORT_80_TCP" not in checked.stdout + checked.stderr


class TestDeployedExamples:
    """What deploy/ shows can be used as it is."""

    FOLDER = ROOT / "deploy"

    def test_files(self):
        checked = run_stint("check", "--config", self.FOLDER / "stint.example.yaml")
        assert (checked.returncode, checked.stderr) == (0, "")

    def test_container(self):
        lines = (self.FOLDER / "container.env").read_text().splitlines()
        variables = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
        variables["STINT_RESOURCES_FILE"] = str(self.FOLDER / "resources.example.yaml")
        checked = run_stint("check", environment=variables)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_version_and_hash_key():
    assert run_stint("version").stdout.startswith("stint ")
    hashed = run_stint("hash-key", "sk-test").stdout.strip()
    assert hashed == hashlib.sha256(b"sk-test").hexdigest()
    assert run_stint("--version").stdout == run_stint("version").stdout


def hash_of_input(text, *arguments):
    return subprocess.run(
        [BINARY, "hash-key", *arguments], input=text, capture_output=True, text=True, timeout=20
    )


class TestCommandLine:
    def test_usage_errors_end_with_2(self):
        for arguments in (["no-such-command"], ["--no-such-option"], ["check", "a", "b"]):
            assert run_stint(*arguments).returncode == 2

    def test_nothing_to_read_a_configuration_from(self):
        for arguments in ([], ["check"]):
            told = run_stint(*arguments, environment={"STINT_PORT": "tcp://10.0.0.1:80"})
            assert (told.returncode, told.stdout) == (2, "")
            for word in ("--config FILE", "stint demo", "stint --help"):
                assert word in told.stderr

    def test_check_takes_the_file_as_it_is(self, files):
        checked = run_stint("check", files.bootstrap)
        assert (checked.returncode, checked.stderr) == (0, "")

    @pytest.mark.parametrize("argument", [[], ["-"]])
    @pytest.mark.parametrize("end", ["\n", "\r\n", ""])
    def test_hash_key_reads_a_line(self, argument, end):
        hashed = hash_of_input("sk-test" + end, *argument)
        assert hashed.stdout.strip() == hashlib.sha256(b"sk-test").hexdigest()
        assert hashed.returncode == 0

    def test_hash_key_without_a_key(self):
        for stdin in ("", "\n"):
            told = hash_of_input(stdin)
            assert (told.returncode, told.stdout) == (2, "")
            assert "standard input" in told.stderr


def test_pipe_is_no_resources_file(files):
    files.resources.unlink()
    os.mkfifo(files.resources)
    assert "is no regular file" in files.check().stderr
    started = run_stint("--config", files.bootstrap)
    assert started.returncode == 1
    assert "is no regular file" in started.stderr


def test_listeners_in_each_others_way(files):
    text = files.bootstrap.read_text()
    port = next(part for part in text.split() if part.startswith("127.0.0.1:"))
    metrics = f"  metrics: {{prometheus: {{addr: '{port}'}}}}\n"
    files.bootstrap.write_text(text.replace("resources_file", metrics + "resources_file"))
    files.assert_refused(files.bootstrap, 5, "observability.metrics.prometheus.addr")


def test_unknown_provider_key_is_refused(files):
    files.resources.write_text(GOOD_RESOURCES.replace("provider_key: mock", "provider_key: mok"))
    (line, *_) = files.assert_refused(files.resources, 10, "models[0].provider_key")
    assert "did you mean mock?" in line


def test_unknown_provider_key_changes_nothing_at_a_reload(start, upstream):
    rows = resources(upstream.origin)
    gateway = start(rows)
    rows["models"][0]["provider_key"] = "mok"
    gateway.write_resources(rows)
    gateway.wait_log("the resources were refused", "did you mean mock?")
    assert gateway.chat().status == 200
    assert gateway.metric("stint_config_reload_failures_total") == 1
    assert "good again" not in gateway.log()
    rows["models"][0]["provider_key"] = "mock"
    gateway.write_resources(rows)
    gateway.wait_log("the resources are good again")
    assert gateway.metric("stint_config_reload_failures_total") == 1


def test_upstream_that_cannot_be_called_changes_nothing_at_a_reload(start, upstream):
    rows = resources(upstream.origin)
    gateway = start(rows)
    rows["routes"] = [{"name": "r", "match": {"path": "/r"}, "upstream": "http://a/../b"}]
    gateway.write_resources(rows)
    gateway.wait_log("the resources were refused")
    assert gateway.chat().status == 200


def test_recovery_of_a_file_that_was_gone_is_told(start, upstream):
    gateway = start(resources(upstream.origin))
    text = gateway.resources_file.read_text()
    gateway.resources_file.unlink()
    gateway.wait_log("the resources were refused")
    gateway.write_resources(text)
    gateway.wait_log("the resources are good again")
    assert gateway.generation() == 1


def test_metrics_are_documented(start, upstream):
    gateway = start(resources(upstream.origin, key_limit={"rpm": 9}))
    assert gateway.chat().status == 200
    text = gateway.scrape()
    shown = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
    labels = {name: set() for name in shown}
    for name, rest in re.findall(r"(?m)^(\w+)\{(.*)\} ", text):
        family = name if name in shown else re.sub("_(bucket|sum|count)$", "", name)
        labels[family] |= set(re.findall(r'(\w+)="', rest)) - {"le"}
    page = (ROOT / "docs/metrics.md").read_text().partition("With `ratelimit.backend: redis`")[0]
    rows = re.findall(r"(?m)^\| `(stint_\w+)` \| (\w+) \| ([^|]*)\|", page)
    assert {name: kind for name, kind, _ in rows} == shown
    assert {name: set(re.findall(r"\w+", text)) for name, _, text in rows} == labels


def test_metrics_name_the_policies(start, upstream):
    policy = {"id": "p1", "name": 'all "callers"', "limits": {"rpm": 100}}
    gateway = start(resources(upstream.origin, key_limit={"rpm": 9}, rate_limit_policies=[policy]))
    series = gateway.series()
    assert series['stint_policy_info{policy="p1",name="all \\"callers\\""}'] == 1
    assert series['stint_policy_info{policy="api_keys/test",name="api_keys/test key"}'] == 1
