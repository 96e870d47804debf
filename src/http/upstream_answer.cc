#include "http/upstream_answer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace stint::http {

namespace {

// An event of an LLM stream fits into the first; a long body soon has the last.
constexpr std::size_t kFirstBufferBytes = std::size_t{4} * 1024;
constexpr std::size_t kLastBufferBytes = std::size_t{64} * 1024;

// What the kernel takes at once, or soon: not worth a task beside.
constexpr std::size_t kShortRequestBytes = std::size_t{64} * 1024;

}  // namespace

PooledAnswer::PooledAnswer(net::EventLoop& loop, Home home, net::Stream stream,
                           UpstreamLimits limits, UpstreamCancel& cancel,
                           std::shared_ptr<const Outgoing> outgoing)
    : loop_(loop),
      home_(std::move(home)),
      limits_(limits),
      outgoing_(std::move(outgoing)),
      line_(std::make_shared<Line>(loop, std::move(stream))),
      parser_(outgoing_->kind, limits.header_bytes),
      deadline_(loop.deadlines(),
                [this] {
                  timed_out_ = true;
                  close();
                }),
      on_cancel_(cancel, [this] {
        cancelled_ = true;
        close();
      }) {}

// The line itself may live on until its sending has noticed.
PooledAnswer::~PooledAnswer() { close(); }

void PooledAnswer::close() noexcept {
  // It is not open either when it has gone back to the pool.
  if (line_->stream.open()) line_->stream.close();
}

net::Task<UpstreamResult<void>> PooledAnswer::exchange() {
  deadline_.arm(loop_.now() + limits_.head_timeout);
  const auto sent = co_await send();
  if (!sent) co_return sent;
  const auto awaited = co_await await_head();
  deadline_.disarm();
  if (!awaited) co_return awaited;

  if (line_->sending.running() > 0 && head().status >= 300) {
    line_->sending.cancel_all();
    co_await line_->sending.join();
  }
  outgoing_.reset();  // an answer may take long; its request need not be kept
  if (parser_.ended()) end();
  co_return UpstreamResult<void>();
}

net::Task<UpstreamResult<void>> PooledAnswer::send() {
  const Outgoing& out = *outgoing_;
  if (out.head.size() + out.body.size() > kShortRequestBytes) {
    line_->sending.start(send_beside(loop_, line_, outgoing_, limits_.head_timeout));
    co_return UpstreamResult<void>();
  }
  net::Stream::Parts parts{out.head, out.body, std::string_view()};
  const auto now = line_->stream.write_now(parts);
  if (now) co_return sent(*now);
  const auto later =
      co_await line_->stream.write(parts[0], parts[1], parts[2], limits_.head_timeout);
  co_return sent(later);
}

UpstreamResult<void> PooledAnswer::sent(const net::NetResult<void>& written) {
  line_->sent = written.has_value();
  line_->broken = !line_->sent;
  // A server may have answered before it closed the connection: that is for await_head to find.
  const bool over = !written && written.error().code != net::NetErrc::reset &&
                    written.error().code != net::NetErrc::closed;
  if (!over && !cancelled_ && !timed_out_) return {};
  return fail(written ? net::NetError{net::NetErrc::cancelled, "cancelled"} : written.error());
}

net::Task<void> PooledAnswer::send_beside(net::EventLoop& loop, std::shared_ptr<Line> line,
                                          std::shared_ptr<const Outgoing> outgoing,
                                          Duration timeout) {
  const auto written = co_await line->stream.write(outgoing->head, outgoing->body, timeout);
  line->sent = written.has_value();
  line->broken = !line->sent;
  // This task is one of the line's group until it has returned, so the line must live longer.
  loop.post([line = std::move(line)] {});
}

net::Task<UpstreamResult<void>> PooledAnswer::await_head() {
  while (true) {
    const auto event = parser_.next(unread_);
    if (!event) co_return fail(UpstreamErrc::malformed, event.error());
    if (*event == ResponseParser::Event::head) break;
    const auto received = co_await receive();
    if (!received) co_return received;
    if (unread_.empty()) co_return fail(UpstreamErrc::no_answer, "the connection was closed");
  }
  have_head_ = true;
  co_return UpstreamResult<void>();
}

net::Task<UpstreamResult<std::string_view>> PooledAnswer::read() {
  if (error_) co_return std::unexpected(*error_);
  while (true) {
    if (cancelled_ && !ended_) co_return fail(UpstreamErrc::cancelled, "cancelled");
    const auto piece = decode();
    if (!piece || !piece->empty() || ended_) {
      deadline_.disarm();
      co_return piece;
    }
    if (!deadline_.armed()) deadline_.arm(loop_.now() + limits_.read_timeout);
    const auto received = co_await receive();
    if (!received) co_return std::unexpected(received.error());
    if (unread_.empty()) {
      if (!parser_.may_end_here()) co_return fail(UpstreamErrc::cut, "the connection was closed");
      end();
    }
  }
}

net::Task<UpstreamResult<void>> PooledAnswer::receive() {
  // A read that filled the buffer says that there is more where that came from.
  if (buffer_size_ == 0) {
    resize_buffer(kFirstBufferBytes);
  } else if (filled_ && buffer_size_ < kLastBufferBytes) {
    resize_buffer(buffer_size_ * 4);
  }
  const Duration timeout = have_head_ ? limits_.read_timeout : limits_.head_timeout;
  const std::span<char> buffer(buffer_.get(), buffer_size_);
  const auto got = co_await line_->stream.read_some(buffer, timeout);
  if (got) {
    filled_ = *got == buffer_size_;
    unread_ = std::string_view(buffer_.get(), *got);
  } else if (got.error().code != net::NetErrc::closed || cancelled_ || timed_out_) {
    co_return fail(got.error());
  }
  co_return UpstreamResult<void>();
}

// What was in it is used up.
void PooledAnswer::resize_buffer(std::size_t size) {
  buffer_ = std::make_unique_for_overwrite<char[]>(size);
  buffer_size_ = size;
}

UpstreamResult<std::string_view> PooledAnswer::decode() {
  if (malformed_) return fail(UpstreamErrc::malformed, *malformed_);
  // Chunks are joined where they lie, so that what came in one read is passed on in one piece.
  char* begin = nullptr;
  std::size_t size = 0;
  while (!ended_) {
    const auto event = parser_.next(unread_);
    if (!event) {
      if (size == 0) return fail(UpstreamErrc::malformed, event.error());
      malformed_ = event.error();
      break;
    }
    if (*event == ResponseParser::Event::need_more) break;
    if (*event == ResponseParser::Event::end) {
      end();
      break;
    }
    const std::string_view part = parser_.body();
    if (begin == nullptr) begin = buffer_.get() + (part.data() - buffer_.get());
    std::memmove(begin + size, part.data(), part.size());
    size += part.size();
  }
  return std::string_view(begin, size);
}

void PooledAnswer::end() {
  ended_ = true;
  deadline_.disarm();
  // A request that is not all sent, and bytes after the answer, would be taken for the next ones.
  const bool reusable = parser_.keep_alive() && line_->sent && unread_.empty() && !cancelled_;
  const std::shared_ptr<UpstreamPool> pool = home_.pool.lock();
  if (reusable && pool) {
    pool->keep(home_.origin, std::move(line_->stream));
  } else {
    close();
  }
}

bool PooledAnswer::died_unanswered() const noexcept {
  return error_ && error_->code == UpstreamErrc::no_answer && !parser_.begun();
}

std::unexpected<UpstreamError> PooledAnswer::fail(const net::NetError& error) {
  // The stream was closed on this side in the first two cases, and says no more than that.
  if (cancelled_ || error.code == net::NetErrc::cancelled) {
    if (timed_out_) return fail(UpstreamErrc::timed_out, "timed out");
    return fail(UpstreamErrc::cancelled, "cancelled");
  }
  if (error.code == net::NetErrc::timed_out) return fail(UpstreamErrc::timed_out, "timed out");
  return fail(have_head_ ? UpstreamErrc::cut : UpstreamErrc::no_answer, error.text);
}

std::unexpected<UpstreamError> PooledAnswer::fail(UpstreamErrc code, const std::string& text) {
  deadline_.disarm();
  close();
  error_.emplace();
  error_->code = code;
  error_->text = home_.origin + ": " + text;
  return std::unexpected(*error_);
}

}  // namespace stint::http
