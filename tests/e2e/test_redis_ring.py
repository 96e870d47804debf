"""Several independent Redis servers: each bucket is on one of them, and nothing that happens to one
concerns the others' buckets."""

import collections
import contextlib
import math
import time

import pytest

from support.client import render
from support.counting import fallbacks, know_each_other
from support.gateway import limit, resources
from support.load import Load
from support.poll import room_in_window, until
from support.redis import RedisServer, parse_bucket

PAY = "routes/pay"
QUOTA = 25
REPLICAS = 3


@pytest.fixture
def shards(tmp_path):
    """shards(count) gives so many Redis servers."""
    servers = []

    def start(count):
        made = [RedisServer(tmp_path / f"redis-{len(servers) + i}") for i in range(count)]
        servers.extend(made)
        return made

    yield start
    try:
        for server in servers:
            if server.running():
                server.assert_all_expire()
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def start_on(start):
    """start_on(servers, rows) gives a gateway that counts on a ring of them."""

    def start_one(servers, rows, wait=True, **redis):
        settings = ring(servers, **redis)
        gateway = start(rows, settings, wait=False)
        gateway.wait_ready()
        if wait:
            wait_counting(gateway)
        return gateway

    return start_one


def ring(servers, **redis):
    if "shards" not in redis:
        redis["urls"] = [server.url for server in servers]
    return {"ratelimit": {"backend": "redis", "redis": {"timeout_ms": 2000, **redis}}}


def wait_counting(gateway):
    until(lambda: not gateway.degraded(), "it counts in Redis")


def pay(origin, limits, group_by):
    """Resources with a plain route of these limits."""
    route = {"id": "pay", "name": "pay", "match": {"path_prefix": "/pay"}, "upstream": origin}
    return resources(origin, routes=[{**route, "rate_limit": limits, "group_by": group_by}])


def per_user(origin, quota=QUOTA, algorithm="fixed_window"):
    limits = [limit("requests", quota, "1d", algorithm)]
    return pay(origin, limits, ["header:x-user"])


def by(user):
    return {"headers": {"X-User": user}}


def payment(user):
    return render("GET", "/pay/now", **by(user))


def buckets(server):
    return {key for key in server.keys(PAY) if key.endswith("}") and not_moved(server, key)}


def not_moved(server, key):
    return server.ask("TYPE", key) == b"string"


def users_on(server):
    """Whose buckets it has."""
    return {key.rpartition("=")[2].rstrip("}") for key in buckets(server)}


def admitted_by_user(samples, users):
    counts = collections.Counter()
    for sample in samples:
        if sample.status == 200:
            counts[users[sample.number % len(users)]] += 1
    return counts


class TestShards:
    def test_each_bucket_is_on_one_whatever_the_order(self, shards, start_on, upstream):
        servers = shards(2)
        limits = [limit("requests", 10, "60s")]
        rows = pay(upstream.origin, limits, ["client_ip", "path"])
        gateways = [start_on(servers, rows), start_on(servers[::-1], rows)]
        room_in_window(60, 10)
        for path in range(20):
            answers = [gateways[n % 2].request("GET", f"/pay/{path}") for n in range(11)]
            assert [answer.status for answer in answers] == [200] * 10 + [429]
        one, other = map(buckets, servers)
        assert one and other
        assert not one & other
        assert len(one | other) == 20
        for server, its in zip(servers, (one, other)):  # each gateway was asked about all of them
            name = f"127.0.0.1:{server.port}/0"
            keys = lambda: gateways[0].metric("stint_shard_keys", shard=name)  # noqa: E731
            until(lambda: abs(keys() - len(its)) <= 1, f"{len(its)} keys are seen", 3)

    def test_one_url_is_a_single_server(self, shards, start_on, start, upstream):
        (server,) = shards(1)
        rows = per_user(upstream.origin, 3)
        single = {"backend": "redis", "redis": {"url": server.url}}
        gateways = [start_on([server], rows), start(rows, {"ratelimit": single})]
        wait_counting(gateways[1])
        answers = [gateways[n % 2].request("GET", "/pay/now", **by("u")) for n in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert len(buckets(server)) == 1
        names = [gateway.request("GET", "/readyz").json()["store"]["shards"] for gateway in gateways]
        assert names[0] == names[1]

    def test_a_single_server_becomes_a_shard_with_a_name(self, shards, start, upstream):
        """What it counts stays with it, whatever it is called now, and it is one server."""
        servers = shards(2)
        url = servers[0].url
        single = {"backend": "redis", "redis": {"url": url, "timeout_ms": 2000}}
        gateway = start(per_user(upstream.origin, 3), {"ratelimit": single})
        wait_counting(gateway)
        users = [f"user{n}" for n in range(40)]
        for user in users:
            assert gateway.request("GET", "/pay/now", **by(user)).status == 200
        named = [{"name": name, "url": server.url} for name, server in zip("ab", servers)]
        redis = {"shards": named, "previous": {"urls": [url]}, "timeout_ms": 2000}
        gateway.write_bootstrap(
            {**gateway.bootstrap, "ratelimit": {"backend": "redis", "redis": redis}}
        )

        def known():
            store = gateway.request("GET", "/readyz").json()["store"]
            return [shard["name"] for shard in store["shards"]]

        until(lambda: known() == ["a", "b"], "they are in use")
        wait_counting(gateway)
        for user in users:
            statuses = [gateway.request("GET", "/pay/now", **by(user)).status for _ in range(3)]
            assert statuses == [200, 200, 429]
        assert gateway.metric("stint_fallback_decisions_total") == 0
        assert all(map(users_on, servers))

    def test_a_server_of_the_previous_ring_is_let_go(self, shards, start_on, upstream):
        """When the hand-over is over nobody needs it, nor hears of it."""
        servers = shards(3)
        previous = {"urls": [server.url for server in servers]}
        rows = per_user(upstream.origin)
        gateway = start_on(servers[:2], rows, previous=previous, handover_secs=1)
        names = [f"127.0.0.1:{server.port}/0" for server in servers[:2]]

        def known():
            store = gateway.request("GET", "/readyz").json()["store"]
            return [shard["name"] for shard in store["shards"]]

        until(lambda: known() == sorted(names), "the third is let go", 5)
        servers[2].kill()
        assert gateway.request("GET", "/pay/now", **by("u")).status == 200
        assert not gateway.degraded()

    def test_what_a_change_costs_is_said(self, shards, start_on, upstream):
        servers = shards(3)
        gateway = start_on(servers[:2], per_user(upstream.origin))
        gateway.write_bootstrap({**gateway.bootstrap, **ring(servers)})
        gateway.wait_log("of the buckets begin anew; with `previous` they would be brought along")
        previous = {"urls": [server.url for server in servers]}
        changed = ring(servers[1:], previous=previous, handover_secs=600)
        gateway.write_bootstrap({**gateway.bootstrap, **changed})
        until(lambda: gateway.log().count("new ratelimit.redis in force") == 2, "it is in force")
        assert "changed again" not in gateway.log()
        previous = {"urls": [server.url for server in servers[1:]]}
        gateway.write_bootstrap({**gateway.bootstrap, **ring(servers, previous=previous)})
        gateway.wait_log("were changed again before handover_secs had passed")

    def test_a_name_is_kept_when_the_address_changes(self, shards, start_on, upstream):
        """Case C10: what decides is the name, neither the address nor the place in the list."""
        servers = shards(3)
        rows = per_user(upstream.origin)

        def named(order):
            return [{"name": f"r{n}", "url": servers[place].url} for n, place in order]

        one = start_on(servers, rows, shards=named([(1, 0), (2, 1), (11, 2)]))
        users = [f"user{n}" for n in range(60)]
        for user in users:
            assert one.request("GET", "/pay/now", **by(user)).status == 200
        before = [users_on(server) for server in servers]
        assert sum(map(len, before)) == len(users)
        assert all(len(some) > 8 for some in before)
        for server in servers:
            server.ask("FLUSHALL")
        # r1 and r2 have changed their servers, and the list its order.
        other = start_on(servers, rows, shards=named([(11, 2), (2, 0), (1, 1)]))
        for user in users:
            assert other.request("GET", "/pay/now", **by(user)).status == 200
        assert [users_on(server) for server in servers] == [before[1], before[0], before[2]]

    def test_an_admission_over_two_shards(self, shards, start_on, upstream):
        """All or nothing: where one shard refuses, the other gets back what it charged."""
        servers = shards(3)
        policies = [
            {"name": name, "group_by": [f"header:{header}"], "limits": [limit("requests", 5, "1d")]}
            for name, header in (("a", "x-a"), ("b", "x-b"))
        ]
        for policy in policies:
            policy["id"] = policy["name"]
        rows = resources(upstream.origin, rate_limit_policies=policies)
        gateway = start_on(servers, rows)
        for n in range(12):  # the bucket of b is everybody's, those of a are all over the ring
            answer = gateway.post(
                "/v1/embeddings",
                {"model": "embed", "input": "x"},
                headers={"X-A": str(n), "X-B": "all"},
            )
            assert answer.status == (200 if n < 5 else 429)
        until(lambda: used_of(servers, "a") == 5, "what was charged is given back")
        assert used_of(servers, "b") == 5


def used_of(servers, policy):
    """What all buckets of a policy have used together."""
    used = 0
    for server in servers:
        for key in server.keys(policy):
            raw = server.ask("GET", key)
            if raw:
                used += parse_bucket(raw)["fixed_window"]["used"]
    return used


class TestOneIsAway:
    """One of three shards fails under load: the others' buckets are exact, its own follow their
    outage rule."""

    RATE = 250

    @contextlib.contextmanager
    def killed(self, server):
        server.kill()
        yield
        server.start()

    @contextlib.contextmanager
    def stopped(self, server):
        with server.paused():
            yield

    @pytest.mark.parametrize("how", ["killed", "stopped"])
    def test_for_some_seconds(self, how, shards, start_on, upstream):
        servers = shards(3)
        rows = per_user(upstream.origin)
        gateways = [start_on(servers, rows, timeout_ms=100) for _ in range(2)]
        for server in servers:
            know_each_other(gateways, server)
        users = [f"user{n}" for n in range(61)]  # odd, so that each comes to both
        bad = servers[1]
        with Load(gateways, lambda n: payment(users[n % len(users)]), self.RATE) as load:
            until(lambda: len(load.samples) > 3 * len(users), "all have been seen", 10)
            its_own = users_on(bad)
            assert 5 < len(its_own) < 40
            with getattr(self, how)(bad):
                until(lambda: all(map(self.degraded_shards, gateways)), "it is told", 5)
                for gateway in gateways:
                    assert self.degraded_shards(gateway) == [f"127.0.0.1:{bad.port}/0"]
                enough = len(users) * QUOTA * 2
                until(lambda: len(load.samples) > enough, "all limits are used up", 30)
                meanwhile = admitted_by_user([*load.samples], users)
            for gateway in gateways:
                wait_counting(gateway)
        assert load.statuses() == {200, 429}
        counts = admitted_by_user(load.samples, users)
        others = [counts[user] for user in users if user not in its_own]
        assert set(others) == {QUOTA}
        # Each replica has a share of what was left, and may not have heard of the last few.
        most = QUOTA + len(gateways) + 4
        assert all(meanwhile[user] <= most for user in its_own), meanwhile
        again = QUOTA if how == "killed" else 0  # it comes back empty
        assert all(counts[user] <= most + again for user in its_own), counts
        for gateway in gateways:
            name = f"127.0.0.1:{bad.port}/0"
            its_own_fallbacks = gateway.metric("stint_fallback_decisions_total", shard=name)
            assert its_own_fallbacks > 0
            assert [its_own_fallbacks] == fallbacks([gateway])

    def degraded_shards(self, gateway):
        store = gateway.request("GET", "/readyz").json()["store"]
        return [shard["name"] for shard in store["shards"] if shard["degraded"]]

    def test_the_log_is_not_flooded(self, shards, start_on, upstream):
        (server,) = shards(1)
        gateway = start_on([server], per_user(upstream.origin))
        gateway.wait_log("redis counts")
        for _ in range(20):
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            time.sleep(0.15)
        wait_counting(gateway)
        assert gateway.log().count("redis is away") <= 1
        assert gateway.log().count("redis counts") <= 1

    def test_comes_and_goes(self, shards, start_on, upstream):
        """Every second it stands still for a second. Nothing else is disturbed."""
        servers = shards(3)
        gateways = [start_on(servers, per_user(upstream.origin, 10_000)) for _ in range(2)]
        users = [f"user{n}" for n in range(60)]
        with Load(gateways, lambda n: payment(users[n % len(users)]), self.RATE) as load:
            until(lambda: len(load.samples) > 2 * len(users), "all have been seen", 10)
            its_own = users_on(servers[2])
            for _ in range(4):
                with servers[2].paused():
                    time.sleep(1)
                time.sleep(1)
        for gateway in gateways:
            wait_counting(gateway)
        assert load.statuses() == {200}
        counts = admitted_by_user(load.samples, users)
        expected = sum(counts[user] for user in users if user not in its_own)
        assert used_of(servers[:2], PAY) == expected


class TestChange:
    """A shard is added or removed while requests come in."""

    RATE = 500
    USERS = [f"user{n}" for n in range(50)]
    ALGORITHMS = ["fixed_window", "sliding_window", "token_bucket", "sliding_log"]
    # Requests, by which a bucket that were counted on two shards would admit nearly two quotas.
    OFFERED = len(USERS) * len(ALGORITHMS) * QUOTA * 1.6

    def rows(self, origin):
        """Four routes, one of each algorithm."""
        routes = []
        for algorithm in self.ALGORITHMS:
            row = (
                {"unit": "requests", "algorithm": algorithm, "capacity": QUOTA, "refill_rate": 0.001}
                if algorithm == "token_bucket"
                else limit("requests", QUOTA, "1d", algorithm)
            )
            routes.append(
                {
                    "name": algorithm,
                    "match": {"path": f"/{algorithm}"},
                    "upstream": origin,
                    "rate_limit": [row],
                    "group_by": ["header:x-user"],
                }
            )
        return resources(origin, routes=routes)

    def request(self, number):
        user, algorithm = self.who(number)
        return render("GET", f"/{algorithm}", **by(user))

    def who(self, number):
        return self.USERS[number % len(self.USERS)], self.ALGORITHMS[number // 7 % 4]

    def excess(self, samples):
        counts = collections.Counter(
            self.who(sample.number) for sample in samples if sample.status == 200
        )
        return sum(max(0, count - QUOTA) for count in counts.values()), len(counts)

    def run(self, gateways, change):
        """Requests before, during and after `change(load)`. The samples."""
        with Load(gateways, self.request, self.RATE) as load:
            until(lambda: len(load.samples) > 1000, "many have been seen", 20)
            change(load)
            changed = len(load.samples)
            until(lambda: len(load.samples) > self.OFFERED, "all limits are used up", 60)
        assert load.statuses() == {200, 429}
        assert changed < self.OFFERED / 2
        return load.samples

    @pytest.mark.parametrize("what", ["added", "removed"])
    def test_by_reload(self, what, shards, start_on, upstream):
        servers = shards(3)
        before, after = servers[:2], servers
        if what == "removed":
            before, after = after, before
        gateways = [start_on(before, self.rows(upstream.origin)) for _ in range(REPLICAS)]

        def change(_):
            previous = {"urls": [server.url for server in before]}
            for gateway in gateways:
                settings = ring(after, previous=previous, handover_secs=600)
                gateway.write_bootstrap({**gateway.bootstrap, **settings})
            for gateway in gateways:
                gateway.wait_log("new ratelimit.redis in force")

        samples = self.run(gateways, change)
        excess, seen = self.excess(samples)
        print(f"{what} by reload: {excess} above {seen} quotas of {QUOTA}")
        # The replicas change over within a moment of one another: what a bucket is asked in that
        # moment by one that is behind follows the outage rule. Nothing else is above a quota.
        assert excess <= min(REPLICAS * seen, sum(fallbacks(gateways)))
        for gateway in gateways:
            wait_counting(gateway)

    @pytest.mark.parametrize("what", ["added", "removed"])
    def test_by_rolling_restart(self, what, shards, start_on, upstream):
        servers = shards(3)
        before, after = servers[:2], servers
        if what == "removed":
            before, after = after, before
        rows = self.rows(upstream.origin)
        gateways = [start_on(before, rows) for _ in range(REPLICAS)]
        fell_back = []

        def change(load):
            previous = {"urls": [server.url for server in before]}
            for place in range(REPLICAS):
                load.resting = {place}
                until(lambda place=place: load.under_way[place] == 0, "nothing is under way")
                fell_back.extend(fallbacks([gateways[place]]))
                gateways[place].stop()
                gateways[place] = start_on(after, rows, previous=previous, handover_secs=600)
                load.resting = set()

        samples = self.run(gateways, change)
        excess, seen = self.excess(samples)
        print(f"{what} by rolling restart: {excess} above {seen} quotas of {QUOTA}")
        fell_back += fallbacks(gateways)
        most = math.ceil(QUOTA / REPLICAS + 1) * REPLICAS * seen
        assert excess <= min(most, sum(fell_back))

    def test_all_changed_before_the_first_request(self, shards, start_on, upstream):
        """With all replicas on the new ring not one request is admitted above a quota."""
        servers = shards(3)
        rows = self.rows(upstream.origin)
        with Load([start_on(servers[:2], rows)], self.request, self.RATE) as load:
            until(lambda: len(load.samples) > 2000, "many have been seen", 30)
        samples = [*load.samples]
        previous = {"urls": [server.url for server in servers[:2]]}
        gateways = [start_on(servers, rows, previous=previous, handover_secs=600) for _ in range(3)]
        with Load(gateways, self.request, self.RATE) as load:
            until(lambda: len(load.samples) > self.OFFERED, "all limits are used up", 60)
        assert load.statuses() == {200, 429}
        excess, seen = self.excess([*samples, *load.samples])
        assert seen == len(self.USERS) * len(self.ALGORITHMS)
        assert excess == 0
        admitted = sum(sample.status == 200 for sample in [*samples, *load.samples])
        assert admitted == seen * QUOTA
