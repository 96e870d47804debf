// Requests to upstream servers over pooled connections, on one event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "http/origin.h"
#include "net/connect.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "stint/time.h"

namespace stint::http {

struct UpstreamRequest {
  std::string method;
  std::string target;  // after the origin's base path, with its query
  // Host, Content-Length, Expect and the fields of one connection (remove_hop_by_hop) are the
  // client's to write or to leave out.
  Fields fields;
  std::string body;
};

// All must be above zero, but for idle_per_origin.
struct UpstreamLimits {
  std::size_t header_bytes = std::size_t{64} * 1024;  // of all heads of an answer together
  // Connections kept for the next request; 0: none. The oldest goes when there are more.
  std::size_t idle_per_origin = 64;
  Duration connect_timeout = std::chrono::seconds{5};  // name look-up and TLS included
  Duration head_timeout = std::chrono::seconds{600};   // from the request to the answer's head
  Duration read_timeout = std::chrono::seconds{300};   // between two pieces of the answer
  Duration idle_timeout = std::chrono::seconds{60};    // of a kept connection
};

enum class UpstreamErrc : std::uint8_t {
  connect,    // no connection (connect_timeout included): nothing was sent
  no_answer,  // the connection ended before a head
  timed_out,  // head_timeout or read_timeout passed
  malformed,  // what came is not HTTP, can be read in two ways, or is above header_bytes
  cut,        // the connection ended in the middle of the body
  cancelled,  // by `cancel`, or the task was cancelled
};
[[nodiscard]] const char* to_string(UpstreamErrc code) noexcept;

struct UpstreamError {
  UpstreamErrc code{};
  std::string text{};  // for logs; names the origin
};
template <class T>
using UpstreamResult = std::expected<T, UpstreamError>;

// One answer as it arrives. Destroying it before its end closes the connection, which tells the
// upstream to stop; at the end the connection goes back to the pool by itself. May outlive its
// client, not its loop.
// Thread rule: the loop's thread.
class UpstreamAnswer {
 public:
  virtual ~UpstreamAnswer() = default;
  // As it was sent, but that several equal Content-Lengths are one. Interim 1xx heads are skipped.
  [[nodiscard]] virtual const ResponseHead& head() const noexcept = 0;
  // The same for whoever wants to keep it; `head` is empty afterwards.
  [[nodiscard]] virtual ResponseHead take_head() noexcept = 0;
  // What Content-Length says; of HEAD and 304 the length of the body that is not sent.
  [[nodiscard]] virtual std::optional<std::uint64_t> content_length() const noexcept = 0;
  // The next bytes of the body, decoded from chunks, as soon as they are there; empty at the end,
  // which HEAD, 204 and 304 are at from the beginning. Valid until the next call. After an error
  // every call gives it again.
  [[nodiscard]] virtual net::Task<UpstreamResult<std::string_view>> read() = 0;
};

// Lets somebody else end a call that is waiting. May end before the calls that were given it.
// Thread rule: the loop's thread.
class UpstreamCancel {
 public:
  UpstreamCancel();
  ~UpstreamCancel();
  UpstreamCancel(const UpstreamCancel&) = delete;
  UpstreamCancel& operator=(const UpstreamCancel&) = delete;

  // Ends every call with this object that is under way, from `send` to the end of its answer, and
  // every later one, with `cancelled`; their connections are closed at once.
  void cancel() noexcept;
  [[nodiscard]] bool cancelled() const noexcept;
  struct Impl;
  [[nodiscard]] Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Thread rule: the loop's thread.
class UpstreamClient {
 public:
  // Of `limits` those of idle connections count here. `tls`: for https origins; may be null if
  // there are none.
  UpstreamClient(net::EventLoop& loop, UpstreamLimits limits,
                 std::shared_ptr<const net::TlsClientContext> tls);
  // Closes the idle connections. No `send` may be under way.
  ~UpstreamClient();
  UpstreamClient(const UpstreamClient&) = delete;
  UpstreamClient& operator=(const UpstreamClient&) = delete;

  // Sends the request and waits for the head. A kept connection that turns out to be dead before a
  // byte of the answer came is replaced once, by a new one, for a request that may be repeated
  // (RFC 9110, section 9.2.2). One whose peer has closed it before anything was sent is passed over
  // for every request. Of `limits` all count here but those of idle connections.
  //
  // A long body is sent while the answer is already awaited: a server may refuse it before its end
  // (from 300 on; the rest is then not sent), or answer while it reads.
  //
  // Throws std::invalid_argument for a method, target or field that would break the head.
  [[nodiscard]] net::Task<UpstreamResult<std::unique_ptr<UpstreamAnswer>>> send(
      Origin origin, UpstreamRequest request, UpstreamLimits limits, UpstreamCancel& cancel);

  [[nodiscard]] std::size_t idle_connections() const noexcept;
  void close_idle() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::http
