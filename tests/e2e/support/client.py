"""An HTTP/1.1 client that hides nothing: bytes as they are sent and as they come."""

import json
import socket
import time


class Closed(Exception):
    """The peer closed or reset the connection where more was due."""


class Headers:
    """Header lines in their order; names compare without regard to case."""

    def __init__(self, lines):
        self.lines = lines

    def all(self, name):
        return [value for key, value in self.lines if key.lower() == name.lower()]

    def get(self, name, default=None):
        return next(iter(self.all(name)), default)

    def __getitem__(self, name):
        values = self.all(name)
        if len(values) != 1:
            raise KeyError(f"{name}: {len(values)} lines in {self.lines}")
        return values[0]

    def __contains__(self, name):
        return bool(self.all(name))

    def names(self):
        return {name.lower() for name, _ in self.lines}


class Answer:
    """The head of an answer; its body is read by `read`, or piece by piece by `pieces`."""

    def __init__(self, connection, status, headers, interim, bodyless):
        self._connection = connection
        self.status = status
        self.headers = headers
        self.interim = interim  # statuses of 1xx heads that came before
        self._pieces = iter(()) if bodyless else connection.body_pieces(headers)
        self.body = b""  # what was read so far

    def pieces(self):
        """The body, chunk by chunk, as soon as each has come."""
        for piece in self._pieces:
            self.body += piece
            yield piece

    def read(self):
        for _ in self.pieces():
            pass
        return self

    def read_until(self, marker):
        """Reads until the body has `marker`; nothing beyond the chunk that brings it."""
        while marker not in self.body:
            if next(self.pieces(), None) is None:
                raise AssertionError(f"the body ended without {marker!r}: {self.body!r}")
        return self.body

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]

    def close(self):
        self._connection.close()

    def __repr__(self):
        return f"<{self.status} {self.headers.lines} {self.body[:300]!r}>"


class Connection:
    """One connection to the port of a gateway."""

    def __init__(self, port, timeout=10.0, source="127.0.0.1"):
        self._socket = socket.create_connection(
            ("127.0.0.1", port), timeout=timeout, source_address=(source, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timeout = timeout
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def reset(self):
        """Closes with a RST in place of a FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data)
        return self

    def ask(self, method, path, **parts):
        """Sends a request without waiting for its answer; `parts` as of `render`."""
        return self.send(render(method, path, **parts))

    def _fill(self):
        try:
            data = self._socket.recv(65536)
        except ConnectionError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of the connection")
        self._buffer += data

    def line(self):
        while b"\r\n" not in self._buffer:
            self._fill()
        line, self._buffer = self._buffer.split(b"\r\n", 1)
        return line

    def _some(self, most):
        if not self._buffer:
            self._fill()
        data, self._buffer = self._buffer[:most], self._buffer[most:]
        return data

    def body_pieces(self, headers):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.line(), 16):
                while size:
                    piece = self._some(size)
                    size -= len(piece)
                    yield piece
                assert self.line() == b""
            assert self.line() == b"", "trailers are not expected"
            return
        if (length := headers.get("content-length")) is not None:
            left = int(length)
            while left:
                piece = self._some(left)
                left -= len(piece)
                yield piece
            return
        while True:
            try:
                yield self._some(65536)
            except Closed:
                return

    def _head(self):
        status_line = self.line()
        assert status_line.startswith(b"HTTP/1.1 "), status_line
        lines = []
        while line := self.line():
            name, value = line.decode("latin-1").split(":", 1)
            lines.append((name, value.strip()))
        return int(status_line[9:12]), Headers(lines)

    def answer(self, method="GET"):
        """The head of the next answer; `method` is that of its request."""
        interim = []
        while True:
            status, headers = self._head()
            if status >= 200:
                bodyless = method == "HEAD" or status in (204, 304)
                return Answer(self, status, headers, interim, bodyless)
            interim.append(status)

    def has_data(self, seconds):
        """Whether something comes within this time; it is kept."""
        self._socket.settimeout(seconds)
        try:
            if not self._buffer:
                self._fill()
            return True
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(self._timeout)

    def rest(self):
        """Everything that still comes, up to the end of the connection."""
        received = self._buffer
        try:
            while data := self._socket.recv(65536):
                received += data
        except ConnectionError:
            pass
        return received

    def closed(self, seconds=2.0):
        """Whether the peer ends the connection within this time, without sending more."""
        self._socket.settimeout(seconds)
        try:
            return self._buffer == b"" and self._socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def render(method, path, *, body=None, key=None, headers=()):
    """The bytes of a request. A body that is no bytes is sent as JSON."""
    lines = list(headers.items() if isinstance(headers, dict) else headers)
    names = {name.lower() for name, _ in lines}
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=False).encode()
        if "content-type" not in names:
            lines.append(("Content-Type", "application/json"))
    if "host" not in names:
        lines.insert(0, ("Host", "gateway.test"))
    if key is not None:
        lines.append(("Authorization", f"Bearer {key}"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(("Content-Length", str(len(body))))
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines) + "\r\n"
    return head.encode("latin-1") + (body or b"")


def request(port, method, path, **parts):
    """One whole request and answer on a connection of its own."""
    with Connection(port) as connection:
        return connection.ask(method, path, **parts).answer(method).read()


class Timed:
    """How long the block took, in seconds."""

    def __enter__(self):
        self._start = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self._start
