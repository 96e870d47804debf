"""The real program: its configuration, its process, and what can be asked of it from outside."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

from support import client
from support.poll import until

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("STINT", str(ROOT / "build/release/stint"))
KEY = "sk-test"

# As OwnPort (tests/integration/own_port.h) has it: below the range that connections take their own
# port from, and kept from other tests to the end of this process, also while nobody listens there.
_ports = iter(range(20000 + os.getpid() % 1000 * 10, 32000))
_kept = []


def free_port():
    for port in _ports:
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0stint-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            held.close()
            continue
        _kept.append(held)
        return port
    raise AssertionError("no free port")


def resources(origin, *, keys=None, key_limit=None, **collections):
    """Resources with a model for chats, one for embeddings, and the key KEY that may use all."""
    key = {"id": "test", "display_name": "test key", "key": KEY, "allowed_models": ["*"]}
    if key_limit is not None:
        key["rate_limit"] = key_limit
    rows = {
        "_format_version": "1",
        "provider_keys": [
            {
                "display_name": "mock",
                "provider": "mock",
                "adapter": "openai",
                "secret": "upstream-secret",
                "api_base": f"{origin}/v1",
            }
        ],
        "models": [model("chat"), model("embed")],
        "api_keys": keys if keys is not None else [key],
    }
    rows.update(collections)
    return rows


def model(name, **more):
    return {
        "display_name": name,
        "model_name": f"mock-{name}",
        "provider_key": "mock",
        **more,
    }


def limit(unit, quota=None, per=None, algorithm=None, **more):
    row = {"unit": unit, "quota": quota, "per": per, "algorithm": algorithm, **more}
    return {name: value for name, value in row.items() if value is not None}


def chat_body(text="hello", model="chat", **more):
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def _merged(base, more):
    out = dict(base)
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = _merged(out[key], value) if both else value
    return out


def run_stint(*arguments, environment=None, cwd=None, timeout=20):
    """Runs the program to its end; for commands that do not serve, and for starts that fail."""
    return subprocess.run(
        [BINARY, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], **(environment or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class Gateway:
    """A running `stint`, in a folder of its own. Everything but the two ports is the caller's."""

    def __init__(self, folder, rows, bootstrap=None, *, wait=True, environment=None):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.metrics_port = free_port()
        self.resources_file = self.folder / "resources.yaml"
        if rows is not None:
            self.write_resources(rows)
        settings = {
            "proxy": {"addr": f"127.0.0.1:{self.port}", "workers": 2},
            "observability": {
                "access_log": False,
                "metrics": {"prometheus": {"addr": f"127.0.0.1:{self.metrics_port}"}},
            },
            "shutdown": {"min_drain_secs": 0, "max_drain_secs": 5},
            "resources_file": "resources.yaml",
        }
        self.bootstrap_file = self.folder / "stint.yaml"
        self.bootstrap = _merged(settings, bootstrap or {})
        self.write_bootstrap(self.bootstrap)
        self._log_file = self.folder / "stint.log"
        with self._log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "--config", str(self.bootstrap_file)],
                env={"PATH": os.environ["PATH"], **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._killed = False
        if wait:
            self.wait_ready()

    def wait_ready(self):
        until(self._serves, "/readyz is 200", 15)

    def _serves(self):
        if self.process.poll() is not None:
            raise AssertionError(f"stint ended with {self.process.returncode}:\n{self.log()}")
        return self.readyz() == 200

    # --- its configuration

    def write_resources(self, rows):
        """Replaces the file in one step."""
        new = self.folder / "resources.new"
        new.write_text(rows if isinstance(rows, str) else as_yaml(rows))
        new.rename(self.resources_file)

    def write_bootstrap(self, settings):
        """Replaces the file in one step; what may change while it runs is in force soon after."""
        self.bootstrap = settings
        new = self.folder / "stint.new"
        new.write_text(as_yaml(settings))
        new.rename(self.bootstrap_file)

    def reload(self, rows):
        """Replaces the resources, and returns when they are in force."""
        before = self.generation()
        self.write_resources(rows)
        self.wait_generation(before + 1)

    def generation(self):
        return client.request(self.port, "GET", "/readyz").json()["generation"]

    def wait_generation(self, least, seconds=5.0):
        until(lambda: self.generation() >= least, f"generation {least} is in force", seconds)

    # --- requests

    def request(self, method, path, **parts):
        return client.request(self.port, method, path, **parts)

    def connect(self, **options):
        return client.Connection(self.port, **options)

    def chat(self, text="hello", key=KEY, **more):
        """One whole chat, streamed or not."""
        return self.post("/v1/chat/completions", chat_body(text, **more), key)

    def post(self, path, body, key=KEY, **parts):
        return self.request("POST", path, body=body, key=key, **parts)

    def start_stream(self, text="hello", key=KEY, **more):
        """The head of a streamed chat; the rest is to be read from it."""
        body = chat_body(text, stream=True, **more)
        return self.connect().ask("POST", "/v1/chat/completions", body=body, key=key).answer()

    def readyz(self):
        try:
            return self.request("GET", "/readyz").status
        except (OSError, client.Closed):
            return None

    # --- what it says about itself

    def degraded(self):
        """Whether the outage rule decides, as /readyz tells; it is 200 whatever it tells."""
        answer = self.request("GET", "/readyz")
        assert answer.status == 200, answer
        return answer.json()["store"]["degraded"]

    def scrape(self):
        answer = client.request(self.metrics_port, "GET", "/metrics")
        assert answer.status == 200, answer
        return answer.body.decode()

    def series(self):
        """Every series and its value: {'name{label="value"}': 1.0}."""
        rows = [line for line in self.scrape().splitlines() if line and not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in rows}

    def metric(self, name, **labels):
        """The sum of all series of the name that have these labels."""
        total = 0.0
        for series, value in self.series().items():
            its_name, _, rest = series.partition("{")
            found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', rest))
            if its_name == name and labels.items() <= found.items():
                total += value
        return total

    def tokens(self, model="chat"):
        """(input, output) tokens that were committed for the model so far."""
        return tuple(
            int(self.metric("stint_tokens_total", model=model, kind=kind))
            for kind in ("input", "output")
        )

    def wait_idle(self, seconds=2.0):
        """Returns when nothing is in flight any more, and no slot is held."""
        names = ("stint_requests_in_flight", "stint_leases_held")
        until(
            lambda: all(self.metric(name) == 0 for name in names),
            "nothing is in flight",
            seconds,
        )

    def log(self):
        """What it has written so far; a request's line comes only after its answer."""
        return self._log_file.read_text(errors="replace")

    def wait_log(self, *texts, seconds=5.0):
        """Its log as soon as all of these are in it."""

        def told():
            log = self.log()
            return log if all(text in log for text in texts) else None

        return until(told, f"the log says {texts}", seconds)

    # --- its process

    def _status(self, field):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s*(\d+)", text, re.MULTILINE)[1])

    def resident_bytes(self):
        return self._status("VmRSS") * 1024

    def peak_bytes(self):
        return self._status("VmHWM") * 1024

    def threads(self):
        return self._status("Threads")

    def handles(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def signal(self, number):
        self.process.send_signal(number)

    def wait_exit(self, seconds=10.0):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"stint did not end within {seconds} s:\n{self.log()}") from None

    def kill(self):
        """Ends it without a word to anybody."""
        self.process.kill()
        self.process.wait()
        self._killed = True

    @contextlib.contextmanager
    def paused(self):
        """Meanwhile it is stopped (SIGSTOP)."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self):
        """Ends it as an operator does; it must end orderly, and have had no fault inside."""
        if self._killed:
            return
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.wait_exit()
        log = self.log()
        assert code == 0, f"exit code {code}:\n{log}"
        assert "failed inside" not in log, log


def stop_all(gateways):
    """Stops each, whatever becomes of the others; then says what was wrong."""
    faults = []
    for one in gateways:
        try:
            one.stop()
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)


def as_yaml(value):
    """JSON is YAML; nothing else is needed to write what is not about YAML."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
