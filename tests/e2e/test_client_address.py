"""Whom a limit by client counts: forwarding headers count only from peers that are trusted."""

import pytest

from support.gateway import resources

PEER = "127.0.0.1"


@pytest.fixture
def start_with(start, upstream):
    """A route with a limit by client, behind these settings of proxy.real_ip."""

    def begin(**real_ip):
        routes = [
            {
                "name": "site",
                "match": {"path_prefix": "/site"},
                "upstream": upstream.origin,
                "rate_limit": {"rpd": 1000},
            }
        ]
        bootstrap = {"proxy": {"real_ip": real_ip}} if real_ip else {}
        return start(resources(upstream.origin, routes=routes), bootstrap)

    return begin


class Counted:
    """Tells clients apart by what is left of their limit."""

    def __init__(self, gateway, upstream):
        self._gateway = gateway
        self._upstream = upstream
        self._seen = {}

    def address(self, *lines, name="X-Forwarded-For"):
        """The address that the upstream is told, of a request with these header lines; counted in
        the same bucket each time."""
        headers = [(name, line) for line in lines]
        answer = self._gateway.request("GET", "/site", headers=headers)
        assert answer.status == 200
        address = self._upstream.last.headers["x-forwarded-for"]
        self._seen[address] = self._seen.get(address, 0) + 1
        assert int(answer.headers["x-ratelimit-remaining"]) == 1000 - self._seen[address]
        return address


@pytest.fixture
def counted(start_with, upstream):
    return lambda **real_ip: Counted(start_with(**real_ip), upstream)


def test_nobody_is_trusted_unless_configured(counted):
    clients = counted()
    for n in range(20):
        assert clients.address(f"203.0.113.{n}") == PEER
    assert clients.address() == PEER
    assert clients.address("127.0.0.1, 10.0.0.1") == PEER


def test_peer_that_is_not_among_the_trusted(counted):
    clients = counted(trusted_proxies=["10.0.0.0/8", "::1"])
    for n in range(20):
        assert clients.address(f"203.0.113.{n}") == PEER


def test_what_the_client_wrote_itself_does_not_count(counted):
    """A trusted peer appends the address that it saw; what stands before it changes nothing."""
    clients = counted(trusted_proxies=[PEER])
    for n in range(20):
        assert clients.address(f"198.51.100.{n}, 203.0.113.7") == "203.0.113.7"
    assert clients.address("203.0.113.7") == "203.0.113.7"
    assert clients.address("203.0.113.8") == "203.0.113.8"


def test_lines_are_joined_in_their_order(counted):
    clients = counted(trusted_proxies=[PEER, "10.0.0.0/8"])
    assert clients.address("203.0.113.1", "203.0.113.2") == "203.0.113.2"
    assert clients.address("203.0.113.1", "203.0.113.2, 10.0.0.1") == "203.0.113.2"
    assert clients.address("203.0.113.3", "10.0.0.1, 10.0.0.2") == "203.0.113.3"


def test_trusted_hops_are_skipped_from_the_right(counted):
    clients = counted(trusted_proxies=[PEER, "10.0.0.0/8"])
    assert clients.address("203.0.113.9, 10.0.0.2, 10.0.0.1") == "203.0.113.9"
    assert clients.address("10.9.9.9, 203.0.113.9, 10.0.0.1") == "203.0.113.9"


def test_all_hops_trusted(counted):
    """The leftmost is the client."""
    clients = counted(trusted_proxies=[PEER, "10.0.0.0/8"])
    assert clients.address("10.0.0.3, 10.0.0.2, 10.0.0.1") == "10.0.0.3"


def test_only_the_rightmost_without_recursion(counted):
    clients = counted(trusted_proxies=[PEER, "10.0.0.0/8"], recursive=False)
    assert clients.address("203.0.113.9, 10.0.0.1") == "10.0.0.1"
    assert clients.address("203.0.113.9") == "203.0.113.9"


@pytest.mark.parametrize(
    "bad",
    [
        "unknown",
        "_hidden",
        "",
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "1.2.3.4/8",
        "fe80::1%eth0",
        "'; DROP",
        "999.1.1.1",
    ],
)
def test_what_is_no_address_ends_the_walk(counted, bad):
    """The hop before it, which said so, is the client."""
    clients = counted(trusted_proxies=[PEER, "10.0.0.0/8"])
    assert clients.address(f"203.0.113.1, {bad}, 10.0.0.1") == "10.0.0.1"
    assert clients.address(f"203.0.113.1, {bad}") == PEER


def test_header_is_absent(counted):
    assert counted(trusted_proxies=[PEER]).address() == PEER


def test_another_header(counted):
    clients = counted(trusted_proxies=[PEER], header="X-Real-Ip")
    assert clients.address("203.0.113.5", name="X-Real-IP") == "203.0.113.5"
    assert clients.address("203.0.113.6", name="X-Forwarded-For") == PEER


def test_ports_and_spellings_are_one_address(counted):
    clients = counted(trusted_proxies=[PEER])
    for text in ("203.0.113.7", "203.0.113.7:4711", "::ffff:203.0.113.7", "[::ffff:203.0.113.7]:1"):
        assert clients.address(text) == "203.0.113.7"


def remaining(gateway, address):
    answer = gateway.request("GET", "/site", headers={"X-Forwarded-For": address})
    return int(answer.headers["x-ratelimit-remaining"])


def test_clients_of_one_network_of_version_6_are_one(start_with):
    gateway = start_with(trusted_proxies=[PEER])
    assert remaining(gateway, "2001:db8:0:1::1") == 999
    assert remaining(gateway, "2001:db8:0:1:ffff::2") == 998
    assert remaining(gateway, "2001:db8:0:2::1") == 999


def test_other_prefix_of_version_6(start_with):
    gateway = start_with(trusted_proxies=[PEER], ipv6_prefix=128)
    assert remaining(gateway, "2001:db8::1") == 999
    assert remaining(gateway, "2001:db8::2") == 999
    assert remaining(gateway, "2001:DB8:0::1") == 998


def test_forged_header_burns_nobody_elses_limit(start, upstream):
    routes = [
        {
            "name": "site",
            "match": {"path": "/site"},
            "upstream": upstream.origin,
            "rate_limit": {"rpd": 2},
        }
    ]
    gateway = start(resources(upstream.origin, routes=routes))
    forged = {"X-Forwarded-For": "127.0.0.2"}
    found = [gateway.request("GET", "/site", headers=forged).status for _ in range(4)]
    assert found == [200, 200, 429, 429]
    # The victim, a client of its own: another address of loopback.
    with gateway.connect(source="127.0.0.2") as victim:
        assert victim.ask("GET", "/site").answer().read().status == 200


CLAIMS = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "shop.test",
    "X-Forwarded-Port": "443",
    "X-Real-IP": "9.9.9.9",
    "Forwarded": "for=9.9.9.9;proto=https",
    "X_Forwarded_For": "9.9.9.9",
    "True-Client-IP": "9.9.9.9",
}


class TestWhatIsPassedOn:
    def told(self, gateway, upstream, **more):
        headers = {**CLAIMS, **more}
        assert gateway.request("GET", "/site", headers=headers).status == 200
        return upstream.last.headers

    def test_claims_of_an_untrusted_peer_go_no_further(self, start_with, upstream):
        gateway = start_with(header="true-client-ip", trusted_proxies=["192.0.2.1"])
        told = self.told(gateway, upstream, **{"X-Forwarded-For": "9.9.9.9"})
        assert told["x-forwarded-for"] == PEER
        assert told["x-forwarded-proto"] == "http"
        assert told["x-forwarded-host"] == "gateway.test"
        assert "9.9.9.9" not in str(told.lines)
        assert "443" not in str(told.lines)

    def test_claims_of_a_trusted_proxy_are_kept(self, start_with, upstream):
        gateway = start_with(trusted_proxies=[PEER])
        told = self.told(gateway, upstream, **{"X-Forwarded-For": "203.0.113.9"})
        assert told["x-forwarded-for"] == "203.0.113.9"
        assert told["x-forwarded-proto"] == "https"
        assert told["x-forwarded-host"] == "shop.test"
        assert told["forwarded"] == CLAIMS["Forwarded"]
        assert told["x-real-ip"] == "9.9.9.9"
        assert "x_forwarded_for" not in told

    def test_a_model_is_not_told_what_an_untrusted_peer_claims(self, start_with, upstream):
        gateway = start_with()
        body = {"model": "chat", "messages": []}
        assert gateway.post("/v1/chat/completions", body, headers=CLAIMS).status == 200
        names = upstream.last.headers.names()
        assert not names & {"forwarded", "x-real-ip", "x-forwarded-host", "x_forwarded_for"}
