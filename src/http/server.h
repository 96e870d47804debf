// An HTTP/1.1 server on one event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "net/event_loop.h"
#include "net/listener.h"
#include "net/result.h"
#include "net/task.h"
#include "stint/time.h"

namespace stint::http {

struct Refusal;  // request_parser.h

struct ServerLimits {
  std::size_t request_line_bytes = std::size_t{8} * 1024;  // longer: 414
  std::size_t header_bytes = std::size_t{32} * 1024;       // all lines together; more: 431
  std::size_t header_count = 100;                          // more: 431
  std::size_t body_bytes = std::size_t{10} * 1024 * 1024;  // more: 413
  Duration header_timeout = std::chrono::seconds{10};      // from the first byte to the last; 408
  Duration body_timeout = std::chrono::seconds{60};        // for the whole body; 408
  Duration idle_timeout = std::chrono::seconds{60};        // between requests; closed silently
  Duration write_timeout = std::chrono::seconds{30};       // without the client taking a byte
  // For the first request of a connection that is new when the server drains.
  Duration drain_grace = std::chrono::seconds{1};
};

// One request and its answer. Lives as long as its handler runs.
// Thread rule: the loop's thread.
class Exchange {
 public:
  virtual ~Exchange() = default;

  [[nodiscard]] virtual const RequestHead& head() const noexcept = 0;
  // The address of the peer of the connection, not of any forwarding header.
  [[nodiscard]] virtual const std::string& peer_address() const noexcept = 0;

  // The whole body (empty if there is none). On an error either it is refused (body_refusal), or
  // the client is gone and the handler returns. To be called at most once.
  [[nodiscard]] virtual net::Task<net::NetResult<std::string>> read_body() = 0;
  // Why read_body has failed, if it was not the client that left: with 413, 408 or 400. The handler
  // answers in its own words; if it returns without, the server answers. Null: no such thing.
  [[nodiscard]] virtual const Refusal* body_refusal() const noexcept { return nullptr; }

  // A whole answer. Content-Length, Transfer-Encoding and Connection are the server's to write,
  // and Date if there is none; the body of HEAD, 204 and 304 is dropped. A field that would break
  // the message (a line end in its value) is left out.
  [[nodiscard]] virtual net::Task<net::NetResult<void>> respond(ResponseHead head,
                                                                std::string body) = 0;

  // An answer in pieces: start, then write for each, then finish. Chunked, or with
  // `content_length` exactly so many bytes. What is written goes out at once.
  [[nodiscard]] virtual net::Task<net::NetResult<void>> start(
      ResponseHead head, std::optional<std::uint64_t> content_length) = 0;
  [[nodiscard]] virtual net::Task<net::NetResult<void>> write(std::string_view bytes) = 0;
  [[nodiscard]] virtual net::Task<net::NetResult<void>> finish() = 0;
  // The answer cannot be completed: the connection is broken off, so that the client sees it.
  virtual void abort() noexcept = 0;
  [[nodiscard]] virtual bool started() const noexcept = 0;

  // While the handler waits for something else: calls `gone` once if the client closes its
  // connection (or its sending side: nobody can tell the difference), or the server stops; at once
  // if it has. Off with unwatch, and by itself before the exchange ends. What the client sends
  // meanwhile is kept for later, as much as a head may have; an end behind far more than that (100
  // KB and up) cannot be seen before it is read.
  virtual void watch_client(std::move_only_function<void()> gone) = 0;
  virtual void unwatch_client() noexcept = 0;
  [[nodiscard]] virtual bool client_gone() const noexcept = 0;
};

// Answers requests. An exception that leaves it gives 500 if nothing was sent, else an abort.
// A handler that returns without an answer gives 500, one in the middle of an answer aborts it.
using Handler = std::function<net::Task<void>(Exchange&)>;

// Refuses with 400 and closes on ambiguous framing (RFC 9112, section 6.3 and 11.2): both
// Content-Length and Transfer-Encoding, several or malformed lengths, an encoding other than
// exactly `chunked`, chunked in HTTP/1.0, white space before a colon, an empty name, obsolete line
// folding, control bytes, a missing or second Host. CONNECT is refused with 501. Nothing of such a
// request reaches the handler.
class Server {
 public:
  // The handler is called on the loop's thread and must outlive the server.
  Server(net::EventLoop& loop, net::Listener listener, ServerLimits limits, Handler handler);
  ~Server();

  // Accepts until `drain` or `stop`. To be started as a task of the caller's; the server may be
  // destroyed before the task has heard of the end.
  [[nodiscard]] net::Task<void> serve();
  // No new connections; answers carry Connection: close; idle connections are closed, new ones
  // after the grace. Nobody whose connection was taken or whose request has arrived is dropped.
  void drain() noexcept;
  // Ends what still runs as if its client had gone; completes when all handlers have returned.
  [[nodiscard]] net::Task<void> stop();

  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::size_t active_exchanges() const noexcept;

  // Told about an exception that left a handler.
  std::function<void(const std::string& what)> on_exception;
  // Told about each request that was refused before a handler saw it: its status.
  std::function<void(int status, const std::string& peer)> on_refused;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::http
