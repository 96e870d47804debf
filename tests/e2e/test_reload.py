"""New resources come into force however the file is replaced; counters stay, bad files do not."""

import os
import signal
import threading
import time

import pytest

from support.client import Closed
from support.gateway import KEY, as_yaml, chat_body, limit, resources
from support.openai_shapes import event, stream_chunk, streamed
from support.poll import until
from support.upstream import Gate


@pytest.fixture
def rows(upstream):
    """rows(quota): resources with this many requests a day for the key; None: no limit."""

    def make(quota, **more):
        key_limit = None if quota is None else {"rpd": quota}
        return resources(upstream.origin, key_limit=key_limit, **more)

    return make


def quota_in_force(gateway):
    """As an answer shows it; None without a limit."""
    value = gateway.chat().headers.get("x-ratelimit-limit-requests")
    return None if value is None else int(value)


def remaining(answer):
    return int(answer.headers["x-ratelimit-remaining-requests"])


class TestCounters:
    def test_lowered_below_use_and_raised_again(self, start, rows):
        gateway = start(rows(10))
        assert [gateway.chat().status for _ in range(5)] == [200] * 5
        gateway.reload(rows(3))
        refused = gateway.chat()
        assert refused.status == 429
        assert refused.headers["x-ratelimit-limit-requests"] == "3"
        assert remaining(refused) == 0
        gateway.reload(rows(20))
        answer = gateway.chat()
        # Refusals charged nothing: 5 before, and this one.
        assert (answer.status, remaining(answer)) == (200, 14)

    def test_limit_removed_and_put_back(self, start, rows):
        gateway = start(rows(2))
        assert [gateway.chat().status for _ in range(3)] == [200, 200, 429]
        gateway.reload(rows(None))
        answer = gateway.chat()
        assert answer.status == 200
        assert not any("ratelimit" in name for name in answer.headers.names())
        gateway.reload(rows(2))
        assert gateway.chat().status == 429

    def test_policy_removed(self, start, rows):
        policies = [{"name": "one", "group_by": ["api_key"], "limits": {"rpd": 1}}]
        gateway = start(rows(None, rate_limit_policies=policies))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        gateway.reload(rows(None))
        assert [gateway.chat().status for _ in range(3)] == [200] * 3

    def test_another_policys_limit_does_not_touch_it(self, start, rows):
        gateway = start(rows(10))
        assert remaining(gateway.chat()) == 9
        policies = [{"name": "new", "group_by": ["api_key"], "limits": {"rpd": 5}}]
        gateway.reload(rows(10, rate_limit_policies=policies))
        assert remaining(gateway.chat()) == 4  # the tighter, new one
        gateway.reload(rows(10))
        assert remaining(gateway.chat()) == 7

    def test_changed_window_starts_anew(self, start, rows, upstream):
        gateway = start(rows(2))
        assert [gateway.chat().status for _ in range(3)] == [200, 200, 429]
        weekly = [limit("requests", 2, "7d")]
        gateway.reload(resources(upstream.origin, key_limit=weekly))
        assert [gateway.chat().status for _ in range(3)] == [200, 200, 429]

    def test_running_stream_keeps_its_slot_and_its_terms(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"concurrency": 1, "tpd": 1000}))
        gate = Gate()
        upstream.once(*streamed(event(stream_chunk("One")), gate, event("[DONE]")))
        stream = gateway.start_stream()
        stream.read_until(b"One")
        gateway.reload(resources(upstream.origin, key_limit={"concurrency": 1, "tpd": 2000}))
        assert gateway.chat().status == 429
        gate.open()
        assert stream.read().body.endswith(event("[DONE]"))
        assert gateway.chat().status == 200
        gateway.reload(resources(upstream.origin))
        gateway.wait_idle()

    def test_key_and_model_come_and_go(self, start, rows, upstream):
        gateway = start(rows(None))
        changed = rows(None)
        changed["models"] = changed["models"][1:]
        changed["api_keys"].append({"key": "sk-new", "allowed_models": ["*"]})
        ask = {"model": "embed", "input": "x"}
        assert gateway.post("/v1/embeddings", ask, "sk-new").status == 401
        gateway.reload(changed)
        assert gateway.chat().status == 404
        assert gateway.post("/v1/embeddings", ask, "sk-new").status == 200


class TestWaysToReplace:
    def test_renamed_over(self, start, rows):
        gateway = start(rows(1000))
        new = gateway.folder / "next"
        new.write_text(as_yaml(rows(1001)))
        new.rename(gateway.resources_file)
        until(lambda: quota_in_force(gateway) == 1001, "the new file is in force", 3)

    def test_written_over(self, start, rows):
        gateway = start(rows(1000))
        for quota in (1001, 1002, 1003):
            gateway.resources_file.write_text(as_yaml(rows(quota)))
            until(lambda: quota_in_force(gateway) == quota, "the new text is in force", 3)

    def test_same_length_and_time(self, start, rows):
        """A change that neither size nor time of modification tells."""
        gateway = start(rows(1000))
        stat = gateway.resources_file.stat()
        gateway.resources_file.write_text(as_yaml(rows(2000)))
        os.utime(gateway.resources_file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        until(lambda: quota_in_force(gateway) == 2000, "the new text is in force", 3)

    def test_removed_and_created_later(self, start, rows):
        gateway = start(rows(1000))
        gateway.resources_file.unlink()
        gateway.wait_log("resources.yaml")
        assert quota_in_force(gateway) == 1000
        gateway.resources_file.write_text(as_yaml(rows(1001)))
        until(lambda: quota_in_force(gateway) == 1001, "the new file is in force", 3)
        gateway.resources_file.write_text(as_yaml(rows(1002)))
        until(lambda: quota_in_force(gateway) == 1002, "it is still watched", 3)

    def test_symlinked_folder_swapped(self, start, rows, tmp_path):
        """As mounted configuration is updated: ..data is a link to a folder, swapped as a whole."""
        mount = tmp_path / "mount"

        def publish(quota):
            folder = mount / f"..{quota}"
            folder.mkdir(parents=True)
            (folder / "resources.yaml").write_text(as_yaml(rows(quota)))
            link = mount / "..data.new"
            link.symlink_to(folder.name)
            link.rename(mount / "..data")

        publish(1000)
        (mount / "resources.yaml").symlink_to("..data/resources.yaml")
        gateway = start(None, {"resources_file": str(mount / "resources.yaml")})
        assert quota_in_force(gateway) == 1000
        for quota in range(1001, 1006):
            publish(quota)
            until(lambda: quota_in_force(gateway) == quota, f"swap to {quota} is in force", 3)
        for quota in range(1006, 1100):
            publish(quota)
        until(lambda: quota_in_force(gateway) == 1099, "the last of many swaps is in force", 3)

    def test_half_written_is_never_used(self, start, rows):
        """The first half alone would be valid: with the limit of the old text, without the key."""
        gateway = start(rows(1000))
        text = as_yaml(rows(1001))
        first = '_format_version: "1"\napi_keys: []\n'
        second = "# " + "x" * 20_000 + "\n"
        with gateway.resources_file.open("w") as file:
            file.write(first)
            file.flush()
            # Longer than several looks at the file.
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                assert quota_in_force(gateway) == 1000
            assert gateway.generation() == 1
            file.seek(0)
            file.write(text + second)
        until(lambda: quota_in_force(gateway) == 1001, "the whole file is in force", 3)
        assert gateway.generation() == 2

    def test_hangup_signal(self, start, rows):
        gateway = start(rows(1000))
        gateway.signal(signal.SIGHUP)
        gateway.wait_generation(2)
        assert quota_in_force(gateway) == 1000

    def test_hangup_signal_rereads_the_bootstrap(self, start, rows):
        gateway = start(rows(1000))
        changed = {**gateway.bootstrap, "proxy": {"addr": "127.0.0.1:1", "workers": 1}}
        gateway.bootstrap_file.write_text(as_yaml(changed))
        gateway.signal(signal.SIGHUP)
        gateway.wait_log("proxy.addr", "needs a restart")
        assert gateway.readyz() == 200


class TestBadFiles:
    @pytest.mark.parametrize(
        "bad",
        [
            "",
            "a: [",
            "nonsense: 1\n",
            '_format_version: "1"\nmodels: [{display_name: 7}]\n',
        ],
        ids=["empty", "no YAML", "unknown key", "ill-typed"],
    )
    def test_old_ones_stay_and_the_place_is_told(self, start, rows, bad):
        gateway = start(rows(3))
        assert gateway.chat().status == 200
        gateway.write_resources(bad)
        gateway.wait_log("error", f"{gateway.resources_file}:")
        assert [gateway.chat().status for _ in range(3)] == [200, 200, 429]
        assert gateway.generation() == 1
        assert gateway.readyz() == 200
        gateway.reload(rows(4))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]

    def test_one_bad_row_refuses_the_whole(self, start, rows):
        gateway = start(rows(1000))
        mixed = rows(1001)
        mixed["models"].append({"display_name": "x", "rate_limit": {"rmp": 1}})
        gateway.write_resources(mixed)
        gateway.wait_log("rmp")
        assert quota_in_force(gateway) == 1000

    def test_no_whole_file_yet(self, start, rows, tmp_path):
        """Somebody still writes it when the program starts: 503 until it is whole."""
        path = tmp_path / "late.yaml"
        with path.open("w") as writing:
            writing.write(as_yaml(rows(7)))
            writing.flush()
            gateway = start(None, {"resources_file": str(path)}, wait=False)
            until(lambda: gateway.readyz() == 503, "it listens", 10)
            answer = gateway.chat()
            assert answer.status == 503
            assert answer.headers["retry-after"] == "1"
            assert gateway.request("GET", "/livez").status == 200
            assert gateway.metric("stint_config_generation") == 0
        until(lambda: gateway.readyz() == 200, "it is ready", 3)
        assert quota_in_force(gateway) == 7


class Load(threading.Thread):
    """Asks without a pause until it is stopped, and remembers what went wrong."""

    def __init__(self, gateway):
        super().__init__()
        self._gateway = gateway
        self._over = threading.Event()
        self._body = chat_body()
        self.answered = 0
        self.wrong = []

    def run(self):
        with self._gateway.connect() as connection:
            while not self._over.is_set():
                try:
                    connection.ask("POST", "/v1/chat/completions", body=self._body, key=KEY)
                    answer = connection.answer().read()
                except (OSError, Closed) as error:
                    self.wrong.append(repr(error))
                    return
                self.answered += 1
                if answer.status != 200:
                    self.wrong.append(answer)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join(10)


@pytest.mark.timeout(120)
def test_a_thousand_reloads_under_load(start, rows, upstream):
    def version(n):
        """Every one differs from the one before: in limits, policies and models."""
        policies = [
            {"name": f"policy {n % 7}", "group_by": ["api_key"], "limits": {"rpd": 10_000_000 + n}}
        ]
        made = rows(1_000_000 + n, rate_limit_policies=policies)
        made["models"].append({**made["models"][0], "display_name": f"extra-{n % 5}"})
        return made

    gateway = start(version(0))

    def settle(first, last):
        """Each is in force before the next; the signal makes the program look at once."""
        for n in range(first, last):
            before = gateway.generation()
            gateway.write_resources(version(n))
            gateway.signal(signal.SIGHUP)
            gateway.wait_generation(before + 1)
        return gateway.threads(), gateway.handles(), gateway.resident_bytes()

    with Load(gateway) as one, Load(gateway) as two:
        threads, handles, resident = settle(1, 200)
        threads_later, handles_later, resident_later = settle(200, 1001)
    assert (one.wrong, two.wrong) == ([], [])
    assert one.answered + two.answered > 1000
    assert gateway.generation() >= 1001
    assert threads_later == threads
    assert handles_later <= handles + 2
    assert resident_later - resident < 2_000_000
    # Not one request was forgotten on the way.
    until(lambda: quota_in_force(gateway) == 1_001_000, "the last one is in force")
    assert remaining(gateway.chat()) == 1_001_000 - len(upstream.received)
