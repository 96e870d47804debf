// One request and its answer on one connection. For the .cc files of the upstream client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/response_parser.h"
#include "http/upstream.h"
#include "http/upstream_cancel.h"
#include "http/upstream_outgoing.h"
#include "http/upstream_pool.h"
#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/stream.h"

namespace stint::http {

class PooledAnswer final : public UpstreamAnswer {
 public:
  // Where the connection comes from and goes back to.
  struct Home {
    std::weak_ptr<UpstreamPool> pool;  // none any more: the client has ended
    std::string origin;                // its name in the pool
  };

  PooledAnswer(net::EventLoop& loop, Home home, net::Stream stream, UpstreamLimits limits,
               UpstreamCancel& cancel, std::shared_ptr<const Outgoing> outgoing);
  ~PooledAnswer() override;

  // Sends the request and waits for the head. To be called first, and once.
  [[nodiscard]] net::Task<UpstreamResult<void>> exchange();
  // After a failed exchange: the connection ended in silence.
  [[nodiscard]] bool died_unanswered() const noexcept;

  [[nodiscard]] const ResponseHead& head() const noexcept override { return parser_.head(); }
  [[nodiscard]] ResponseHead take_head() noexcept override { return parser_.take_head(); }
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept override {
    return parser_.content_length();
  }
  [[nodiscard]] net::Task<UpstreamResult<std::string_view>> read() override;

 private:
  // The connection, and the sending of a long body, which both may outlive the answer.
  struct Line {
    Line(net::EventLoop& loop, net::Stream stream_in)
        : stream(std::move(stream_in)), sending(loop) {}
    net::Stream stream;
    net::TaskGroup sending;
    bool sent = false;    // all of the request
    bool broken = false;  // it could not all be sent
  };
  static net::Task<void> send_beside(net::EventLoop& loop, std::shared_ptr<Line> line,
                                     std::shared_ptr<const Outgoing> outgoing, Duration timeout);

  [[nodiscard]] net::Task<UpstreamResult<void>> send();
  // What the sending of a short request came to.
  [[nodiscard]] UpstreamResult<void> sent(const net::NetResult<void>& written);
  [[nodiscard]] net::Task<UpstreamResult<void>> await_head();
  // Waits for bytes, which are in unread_ then; or for the end, which is then in order.
  [[nodiscard]] net::Task<UpstreamResult<void>> receive();
  void resize_buffer(std::size_t size);
  // The next part of the body in what was received; empty: more is needed, or ended_.
  [[nodiscard]] UpstreamResult<std::string_view> decode();
  // The answer is complete: what becomes of the connection?
  void end();
  void close() noexcept;
  [[nodiscard]] std::unexpected<UpstreamError> fail(UpstreamErrc code, const std::string& text);
  [[nodiscard]] std::unexpected<UpstreamError> fail(const net::NetError& error);

  net::EventLoop& loop_;
  Home home_;
  UpstreamLimits limits_;
  std::shared_ptr<const Outgoing> outgoing_;
  std::shared_ptr<Line> line_;
  ResponseParser parser_;
  std::unique_ptr<char[]> buffer_{};
  std::size_t buffer_size_ = 0;
  std::string_view unread_{};               // the part of the buffer that is not decoded yet
  bool filled_ = false;                     // by the last read
  std::optional<std::string> malformed_{};  // found behind bytes that were good
  bool have_head_ = false;
  bool ended_ = false;
  bool timed_out_ = false;
  bool cancelled_ = false;
  std::optional<UpstreamError> error_{};
  net::Deadline deadline_;
  CancelHook on_cancel_;
};

}  // namespace stint::http
