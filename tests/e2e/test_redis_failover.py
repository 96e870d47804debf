"""Masters that are replaced while requests come in: behind Sentinels, and in a Cluster."""

import time

import pytest

from support.counting import (
    BACK_WITHIN,
    count_together,
    fallbacks,
    know_each_other,
    rows_with,
    unknown_charges,
)
from support.deployments import ClusterDeployment, SentinelDeployment
from support.load import Load, chat_request
from support.poll import until

POLICY = "api_keys/test"
QUOTA = 1_000_000
RATE = 150  # requests a second, over all replicas


def written_since(server, policy, count):
    """Whether a server counts more and more of a policy."""
    return server.used(policy) > count


class TestSentinel:
    @pytest.fixture
    def redis(self, tmp_path):
        deployment = SentinelDeployment(tmp_path / "sentinel")
        deployment.wait_settled()
        yield deployment
        deployment.stop()

    @pytest.fixture
    def three(self, replicas, upstream, redis):
        gateways = replicas(3, rows_with(upstream.origin, {"rpd": QUOTA}), timeout_ms=100)
        know_each_other(gateways, redis)
        return gateways

    def expect_moved(self, gateways, redis, load):
        """They write to the new master, together, soon after it was elected."""
        elected = time.time()
        left = lambda: elected + BACK_WITHIN - time.time()  # noqa: E731
        before = redis.used(POLICY)
        until(lambda: written_since(redis, POLICY, before), "it counts", left())
        until(lambda: count_together(gateways), "counting is shared again", left())
        until(lambda: not any(gateway.degraded() for gateway in gateways), "all are well", 1)
        before, answered = fallbacks(gateways), len(load.samples)
        until(lambda: len(load.samples) > answered + 100, "requests go on")
        assert fallbacks(gateways) == before

    def test_ordered_while_the_old_master_lives(self, three, redis):
        """The old one takes writes for some more seconds, and then answers READONLY."""
        old = redis.master
        with Load(three, chat_request(), RATE) as load:
            until(lambda: load.admitted() > 100, "requests are counted")
            redis.order_failover()
            redis.wait_elected()
            self.expect_moved(three, redis, load)
            assert old.running()
            stale = old.used(POLICY)
            until(lambda: written_since(redis, POLICY, stale + 100), "the new one counts")
            assert old.used(POLICY) == stale or old.ask("ROLE")[0] == b"slave"
        assert load.statuses() == {200}

    def test_killed(self, three, redis):
        old = redis.master
        with Load(three, chat_request(), RATE) as load:
            until(lambda: load.admitted() > 100, "requests are counted")
            old.kill()
            until(lambda: all(gateway.degraded() for gateway in three), "it is missed")
            assert all(gateway.metric("stint_store_degraded") == 1 for gateway in three)
            redis.wait_elected()
            self.expect_moved(three, redis, load)
            assert all(count > 0 for count in fallbacks(three))
            # It comes back as the master that it was, and is told that it is none.
            old.start()
            before, answered = fallbacks(three), len(load.samples)
            until(lambda: old.ask("ROLE")[0] == b"slave", "it is a replica", 30)
            assert fallbacks(three) == before
            assert len(load.samples) > answered
        assert load.statuses() == {200}
        for gateway in three:
            assert gateway.wait_log("redis is away", "redis counts").count("server=mymaster") >= 2


class TestCluster:
    @pytest.fixture
    def redis(self, tmp_path):
        deployment = ClusterDeployment(tmp_path / "cluster", replicas=1, node_timeout_ms=1000)
        yield deployment
        deployment.stop()

    @pytest.fixture
    def keys(self, redis):
        """For each master the id of an API key whose bucket it has."""
        found = {}
        for number in range(1000):
            name = f"k{number}"
            found.setdefault(redis.owner(f"api_keys/{name}"), name)
            if len(found) == len(redis.masters):
                return [found[master] for master in redis.masters]
        raise AssertionError("not spread")

    @pytest.fixture
    def three(self, replicas, upstream, redis, keys):
        rows = rows_with(upstream.origin)
        for name in keys:
            row = {"id": name, "key": f"sk-{name}", "allowed_models": ["*"]}
            rows["api_keys"].append({**row, "rate_limit": {"rpd": QUOTA}})
        gateways = replicas(3, rows, timeout_ms=100)
        know_each_other(gateways, redis)
        return gateways

    @pytest.mark.parametrize("how", ["killed", "stopped"])
    def test_a_master_goes_away(self, three, redis, keys, how):
        gone, *others = redis.masters
        requests = [chat_request(key=f"sk-{name}") for name in keys]
        which = lambda number: number // 3 % 3  # so that each replica uses each key  # noqa: E731
        shard = f"127.0.0.1:{gone.port}/0"
        with Load(three, lambda number: requests[which(number)], RATE) as load:
            until(lambda: load.admitted() > 100, "requests are counted")
            if how == "killed":
                gone.kill()
            else:
                pausing = gone.paused()
                pausing.__enter__()
            missed = lambda gateway: gateway.metric("stint_store_degraded", shard=shard)  # noqa: E731
            until(lambda: all(missed(gateway) for gateway in three), "it is missed")
            redis.wait_replaced(gone)
            elected, before = time.time(), redis.used(f"api_keys/{keys[0]}")
            left = elected + BACK_WITHIN - time.time()
            until(lambda: redis.used(f"api_keys/{keys[0]}") > before, "it is counted again", left)
            until(lambda: not any(gateway.degraded() for gateway in three), "all are well", 2)
            before, answered = fallbacks(three), len(load.samples)
            until(lambda: len(load.samples) > answered + 100, "requests go on")
            if how == "killed":
                gone.start()
            else:
                pausing.__exit__(None, None, None)
            redis.wait_settled()
            until(lambda: len(load.samples) > answered + 300, "requests go on")
            # The one that is gone, and has come back as a replica, is missed no more; what became
            # of its buckets can still be read.
            assert fallbacks(three) == before
            assert all(count > 0 for count in before)
            assert all(missed(gateway) == 0 for gateway in three)
        assert load.statuses() == {200}
        # Nobody else noticed anything: what was admitted was counted, by Redis.
        for name, node in zip(keys[1:], others):
            mine = keys.index(name)
            admitted = sum(which(sample.number) == mine for sample in load.samples)
            assert node.used(f"api_keys/{name}") == admitted
        its_own = [gateway.metric("stint_unknown_charges_total", shard=shard) for gateway in three]
        assert unknown_charges(three) == sum(its_own)
