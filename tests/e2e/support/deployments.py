"""What Redis looks like in production: a master that Sentinels watch, and a Cluster.

Both can be asked and disturbed as a single RedisServer can. What is done to them is done to the
master, or to all masters.
"""

import contextlib
import pathlib

from support.gateway import free_port
from support.poll import until
from support.redis import ReplyError, RedisServer, parse_bucket

# Of the fixture `redis`: pytestmark = pytest.mark.parametrize("redis", EVERY, indirect=True)
EVERY = ("single", "sentinel", "cluster")
MASTER = "mymaster"
SLOTS = 16384


def _info(server, section="replication"):
    lines = server.ask("INFO", section).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


class _Sentinel(RedisServer):
    def __init__(self, folder, *lines):
        self._lines = lines
        super().__init__(folder)

    def _command(self):
        config = self.folder / "sentinel.conf"
        if not config.exists():  # it writes there what it has learned
            head = ["bind 127.0.0.1", f"port {self.port}", f"dir {self.folder}"]
            config.write_text("\n".join([*head, *self._lines]) + "\n")
        return ["redis-server", str(config), "--sentinel"]


class SentinelDeployment:
    """A master with replicas, and three Sentinels that watch it."""

    def __init__(self, folder, replicas=2, down_after_ms=1000):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        quick = ("--repl-diskless-sync-delay", "0")
        first = RedisServer(self.folder / "redis-0", *quick)
        self.nodes = [first]
        for i in range(1, replicas + 1):
            follow = ("--replicaof", "127.0.0.1", str(first.port))
            self.nodes.append(RedisServer(self.folder / f"redis-{i}", *quick, *follow))
        lines = (
            f"sentinel monitor {MASTER} 127.0.0.1 {first.port} 2",
            f"sentinel down-after-milliseconds {MASTER} {down_after_ms}",
            f"sentinel failover-timeout {MASTER} 4000",
            f"sentinel parallel-syncs {MASTER} 2",
        )
        self.sentinels = [_Sentinel(self.folder / f"sentinel-{i}", *lines) for i in range(3)]
        for sentinel in self.sentinels:  # else a demoted master is one for ten seconds more
            sentinel.ask("SENTINEL", "DEBUG", "info-period", 500, "publish-period", 400)
        self.master = first
        addresses = [f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels]
        self.settings = {"sentinels": addresses, "master_name": MASTER}
        self.shards = 1

    def wait_settled(self):
        """Returns when the Sentinels know one another and all replicas of the master."""
        until(self._settled, "Sentinels know everybody", 20)

    def _settled(self):
        for sentinel in self.sentinels:
            values = sentinel.ask("SENTINEL", "MASTER", MASTER)
            state = dict(zip(values[::2], values[1::2]))
            known = (state[b"num-slaves"], state[b"num-other-sentinels"], state[b"flags"])
            if known != (b"%d" % (len(self.nodes) - 1), b"2", b"master"):
                return False
        replicas = [node for node in self.nodes if node is not self.master]
        return all(_info(node).get("master_link_status") == "up" for node in replicas)

    def order_failover(self):
        """Begins a failover although the master lives."""

        def ordered():
            with contextlib.suppress(ReplyError):  # not ready yet
                return self.sentinels[0].ask("SENTINEL", "FAILOVER", MASTER)

        until(ordered, "a failover begins")

    def wait_elected(self, seconds=15):
        """Returns when most Sentinels mean another master, who is `master` from then on."""

        def other():
            ports = [
                int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])
                for sentinel in self.sentinels
            ]
            for node in self.nodes:
                if node is not self.master and ports.count(node.port) >= 2:
                    return node
            return None

        self.master = until(other, "another master", seconds)

    def __getattr__(self, name):
        # All that one server can be asked and can suffer.
        return getattr(self.master, name)

    def stop(self):
        for server in (*self.sentinels, *self.nodes):
            server.stop()


class ClusterDeployment:
    """Masters with replicas, that together have all slots."""

    def __init__(self, folder, masters=3, replicas=0, node_timeout_ms=60_000):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self._buses = [free_port() for _ in range(masters * (1 + replicas))]
        self.nodes = [
            RedisServer(
                self.folder / f"redis-{i}",
                *("--cluster-enabled", "yes", "--cluster-port", str(bus)),
                *("--cluster-node-timeout", str(node_timeout_ms)),
                *("--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"),
            )
            for i, bus in enumerate(self._buses)
        ]
        first = self.nodes[0]
        for i, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            node.ask("CLUSTER", "MEET", "127.0.0.1", first.port, self._buses[0])
        self.masters = self.nodes[:masters]
        for i, node in enumerate(self.masters):
            begin, end = i * SLOTS // masters, (i + 1) * SLOTS // masters - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", begin, end)
        for i, node in enumerate(self.nodes[masters:]):
            until(lambda: self._follows(node, self.masters[i % masters]), "a replica's master")
        self.wait_settled()
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes[:2]]
        self.settings = {"nodes": addresses}
        self.shards = masters

    @staticmethod
    def _follows(node, master):
        with contextlib.suppress(ReplyError):  # it does not know of it yet
            return node.ask("CLUSTER", "REPLICATE", master.ask("CLUSTER", "MYID"))

    def wait_settled(self):
        """Returns when every node that runs takes calls, and replicas have their master's data."""
        until(self._settled, "the cluster is in order", 20, every=0.02)

    def _settled(self):
        for node in self.nodes:
            if not node.running():
                continue
            state = _info_of_cluster(node)
            wanted = ("ok", str(SLOTS), str(len(self.nodes)))
            names = ("cluster_state", "cluster_slots_assigned", "cluster_known_nodes")
            if tuple(state[name] for name in names) != wanted:
                return False
            if _info(node).get("master_link_status", "up") != "up":
                return False
        return True

    def owner(self, policy_or_key):
        """The node that has the slot of a key, as the first node that runs says."""
        slot = self._any().ask("CLUSTER", "KEYSLOT", policy_or_key)
        for first, last, master, *_ in self._any().ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        raise AssertionError(f"nobody has slot {slot}")

    def _any(self):
        return next(node for node in self.nodes if node.running())

    def wait_replaced(self, node, seconds=15):
        """Returns when another node has the slots of this one, and is a master from then on."""
        begin = self.masters.index(node) * SLOTS // len(self.masters)
        witness = next(master for master in self.masters if master is not node)

        def other():
            for first, last, master, *_ in witness.ask("CLUSTER", "SLOTS"):
                if first <= begin <= last and master[1] != node.port:
                    return next(each for each in self.nodes if each.port == master[1])
            return None

        self.masters[self.masters.index(node)] = until(other, "another master", seconds)

    # --- as a single server

    def running(self):
        return all(node.running() for node in self.masters)

    def start(self):
        for node in self.nodes:
            if not node.running():
                node.start()
        self.wait_settled()

    def kill(self):
        for node in self.nodes:
            node.kill()

    def restart(self):
        self.kill()
        self.start()

    @contextlib.contextmanager
    def paused(self):
        with contextlib.ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node.paused())
            yield

    def stop(self):
        for node in self.nodes:
            node.stop()

    def ask(self, *words):
        """The same of every master; the answer of the first."""
        return [node.ask(*words) for node in self.masters][0]

    def keys(self, policy=None):
        return sorted(key for node in self.masters for key in node.keys(policy))

    def raw_bucket(self, policy):
        found = [raw for node in self.masters if (raw := node.raw_bucket(policy))]
        assert len(found) < 2, found
        return found[0] if found else None

    def bucket(self, policy):
        raw = self.raw_bucket(policy)
        return parse_bucket(raw) if raw else None

    def used(self, policy, algorithm="fixed_window"):
        bucket = self.bucket(policy)
        return bucket[algorithm]["used"] if bucket else 0

    def leases(self, policy):
        return [lease for node in self.masters for lease in node.leases(policy)]

    def clients(self):
        """How many connections each of them has, if all have as many."""
        counts = {node.clients() for node in self.masters}
        return counts.pop() if len(counts) == 1 else -1

    def calls(self, command):
        return sum(node.calls(command) for node in self.masters)

    def assert_all_expire(self):
        for node in self.masters:
            node.assert_all_expire()


def _info_of_cluster(node):
    lines = node.ask("CLUSTER", "INFO").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)
