"""The admin API of a running gateway, as an operator asks it."""

from urllib.parse import quote

from support import client
from support.gateway import free_port

ROOT = "/admin/v1"


class Admin:
    """`settings` are those of the gateway that is to have it: start(rows, admin.settings)."""

    def __init__(self, *keys, addr="127.0.0.1", **settings):
        self.port = free_port()
        self.key = keys[0] if keys else None
        mine = {"enabled": True, "addr": f"{addr}:{self.port}", "admin_keys": list(keys)}
        self.settings = {"admin": mine, **settings}

    def ask(self, method, path, *, headers=(), **parts):
        """One request and its answer, whatever it is."""
        lines = dict(headers)
        lines.setdefault("Host", f"127.0.0.1:{self.port}")
        parts.setdefault("key", self.key)
        return client.request(self.port, method, ROOT + path, headers=lines, **parts)

    def get(self, path, **query):
        """The body of an answer that is 200."""
        text = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
        answer = self.ask("GET", path + ("?" + text if text else ""))
        assert answer.status == 200, answer
        return answer.json()

    def buckets(self, pattern="*", limit=100):
        """All that match, page by page; each page must say that nothing is missing."""
        found, cursor = [], "0"
        while cursor is not None:
            page = self.get("/buckets", pattern=pattern, limit=limit, cursor=cursor)
            assert page["complete"], page
            assert len(page["buckets"]) <= limit
            found += page["buckets"]
            cursor = page["next"]
        return found

    def reset(self, pattern):
        """How many buckets were forgotten."""
        removed, cursor = 0, "0"
        while cursor is not None:
            answer = self.ask("POST", "/reset", body={"pattern": pattern, "cursor": cursor})
            assert answer.status == 200, answer
            body = answer.json()
            assert body["complete"], body
            removed += body["removed"]
            cursor = body["next"]
        return removed
