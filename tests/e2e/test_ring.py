"""`stint ring`: shares of the shards of a configuration, and what a change would move."""

import re

import pytest

from support.gateway import ROOT, as_yaml, run_stint

SHARDS = [
    {"name": "a", "url": "redis://user:s3cret@redis-a"},
    {"name": "b", "url": "redis://redis-b:6380/2"},
    {"name": "c", "url": "rediss://redis-c", "weight": 2.0},
]


@pytest.fixture
def ring(tmp_path):
    """ring(redis, *arguments) runs it on a configuration with this block."""

    def run(redis, *arguments, **options):
        file = tmp_path / "stint.yaml"
        settings = {"resources_file": "r.yaml", "ratelimit": {"backend": "redis", "redis": redis}}
        file.write_text(as_yaml(settings))
        return run_stint("ring", "--config", file, *arguments, **options)

    return run


def good(result):
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def shares(text):
    """{name: (address, weight, share in percent)} of each table of shares, in order."""
    tables = []
    for line in text.splitlines():
        if line.split()[:2] == ["shard", "address"]:
            tables.append({})
        row = re.fullmatch(r"  (\S+) +(\S+:\d+/\d+) +([\d.]+) +\d+ +([\d.]+) %", line)
        if row:
            tables[-1][row[1]] = (row[2], float(row[3]), float(row[4]))
    return tables


def moves(text):
    rows = re.findall(r"(?m)^  (\S+) +(\S+) +([\d.]+) %$", text.partition("would move:")[2])
    return {(source, target): float(share) for source, target, share in rows}


def test_shares(ring):
    text = good(ring({"shards": SHARDS}))
    (table,) = shares(text)
    assert [row[:2] for row in table.values()] == [
        ("redis-a:6379/0", 1.0),
        ("redis-b:6380/2", 1.0),
        ("redis-c:6379/0", 2.0),
    ]
    for name, fair in (("a", 25), ("b", 25), ("c", 50)):
        assert table[name][2] == pytest.approx(fair, rel=0.1)
    assert "s3cret" not in text and "user" not in text


def test_the_order_does_not_matter(ring):
    there = shares(good(ring({"shards": SHARDS})))
    assert shares(good(ring({"shards": SHARDS[::-1]}))) == there


def test_a_shard_that_comes(ring):
    text = good(ring({"shards": SHARDS[:2]}, "--with", "d=redis://:s3cret@redis-d"))
    before, after = shares(text)
    moved = moves(text)
    assert {target for _, target in moved} == {"d"}
    assert {source for source, _ in moved} == {"a", "b"}
    assert sum(moved.values()) == pytest.approx(after["d"][2], abs=0.02)
    assert sum(moved.values()) == pytest.approx(100 / 3, abs=4)
    assert "s3cret" not in text


def test_shards_that_come_and_go(ring):
    text = good(ring({"shards": SHARDS}, "--without", "a", "--without", "b", "--with", "redis://x"))
    (before, after) = shares(text)
    assert set(after) == {"c", "x:6379/0"}
    moved = moves(text)
    assert {source for source, _ in moved} == {"a", "b", "c"}
    from_a = sum(share for (source, _), share in moved.items() if source == "a")
    assert from_a == pytest.approx(before["a"][2], abs=0.02)


def test_a_named_shard_moves_house(ring):
    text = good(ring({"shards": SHARDS}, "--without", "b", "--with", "b=redis://new-home"))
    assert "no bucket moves" in text


def test_one_server(ring):
    text = good(ring({"url": "redis://:s3cret@alone"}))
    assert "one shard" in text and "alone:6379/0" in text and "s3cret" not in text


@pytest.mark.parametrize(
    "redis, why",
    [
        ({"sentinels": ["s:26379"], "master_name": "m"}, "mode is sentinel"),
        ({"nodes": ["n:6379"]}, "mode is cluster"),
    ],
    ids=["sentinel", "cluster"],
)
def test_without_a_ring(ring, redis, why):
    text = good(ring(redis))
    assert why in text and "no ring" in text
    asked = ring(redis, "--with", "x=redis://x")
    assert asked.returncode == 1 and why in asked.stdout + asked.stderr


def test_from_the_environment(tmp_path):
    text = good(
        run_stint(
            "ring",
            environment={
                "STINT_RESOURCES_FILE": "r.yaml",
                "STINT_RATELIMIT__BACKEND": "redis",
                "REDIS_URLS": "a=redis://h1,redis://h2",
                "RATE_LIMIT_CONSISTENT_HASH_VNODES": "200",
            },
        )
    )
    assert "200 virtual nodes" in text
    assert set(shares(text)[0]) == {"a", "h2:6379/0"}


def test_what_cannot_be(ring):
    for arguments, word in (
        (["--without", "z"], "no shard 'z'"),
        (["--with", "a=redis://x"], "a shard 'a' already"),
        (["--with", "n=redis://:s3cret@x,7000"], "weight"),
    ):
        refused = ring({"shards": SHARDS}, *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert word in refused.stderr and "s3cret" not in refused.stderr
    broken = ring({"shards": [*SHARDS, SHARDS[0]]})
    assert broken.returncode == 1
    assert "ratelimit.redis.shards[3]" in broken.stderr
    assert run_stint("ring").returncode == 2


def test_what_the_documentation_shows(ring):
    page = (ROOT / "docs/configuration.md").read_text()
    shown = page.partition("$ stint ring stint.yaml --with c=redis://redis-c\n")[2]
    two = {"urls": ["a=redis://redis-a", "b=redis://redis-b"]}
    assert good(ring(two, "--with", "c=redis://redis-c")) == shown.partition("```")[0]
