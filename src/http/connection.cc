#include "http/connection.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <tuple>
#include <utility>

#include "http/answer_head.h"

namespace stint::http {
namespace {

using net::NetErrc;
using net::NetResult;
using net::Task;

// How long a client may take to read the last answer of a connection, and how much it may still
// send before it does.
constexpr Duration kLinger = std::chrono::seconds{2};
constexpr std::size_t kLingerBytes = std::size_t{32} * 1024 * 1024;
// Pieces in which a body of known length is read, at first.
constexpr std::size_t kFirstPiece = std::size_t{16} * 1024;

Refusal make_refusal(int status, std::string_view code, std::string_view message) {
  Refusal refusal;
  refusal.status = status;
  refusal.code = code;
  refusal.message = message;
  return refusal;
}

}  // namespace

std::string_view ServerContext::date() {
  const auto second = std::chrono::floor<std::chrono::seconds>(system_clock().wall_now());
  if (second != date_second_ || date_.empty()) {
    date_second_ = second;
    date_ = http_date(second);
  }
  return date_;
}

Connection::Connection(ServerContext& server, net::Stream stream)
    : server_(server),
      stream_(std::move(stream)),
      // The limits, their line ends, and a little more: a head always fits or is refused.
      input_cap_(server.limits.request_line_bytes + server.limits.header_bytes + 1024) {}

Task<void> Connection::run() {
  for (;;) {
    const auto more = co_await read_request();
    if (!more) break;
    co_await handle();
    if (answer_ != Answer::finished || !stream_.open()) break;
    if (!keep_alive_) {
      // A client that asked for the end waits for nothing but it; another may be sending already.
      const bool expected = !request_.head.keep_alive && body_done_ && input_.empty();
      if (!expected) co_await linger();
      break;
    }
    if (body_done_) continue;
    const auto usable = co_await skip_body();
    if (!usable) break;
  }
  stream_.close();
}

Task<bool> Connection::wait_for_request() {
  // An idle connection holds no memory but its own. (Moved from, because a string keeps its memory
  // when a short one is assigned.)
  input_.release();
  std::ignore = ParsedHead(std::move(request_));
  std::ignore = std::string(std::move(text_));
  if (server_.draining && had_request_ && !stream_.readable()) co_return false;
  const Duration deadline = server_.loop.now() + server_.limits.idle_timeout;
  for (;;) {
    idle_ = true;
    const Duration left = deadline - server_.loop.now();
    const auto readable = co_await stream_.wait_readable(left);
    idle_ = false;
    if (!readable) co_return false;
    const auto read = stream_.read_waiting(input_.room(input_cap_));
    if (!read) continue;
    if (!*read) co_return false;
    input_.add(**read);
    co_return true;
  }
}

Task<bool> Connection::read_request() {
  if (input_.empty()) {
    const auto arrived = co_await wait_for_request();
    if (!arrived) co_return false;
  }
  const Duration deadline = server_.loop.now() + server_.limits.header_timeout;
  scanner_.reset();
  std::size_t length = 0;
  while (length == 0) {
    // Empty lines before a request line are old clients' habit (RFC 9112, section 2.2).
    while (input_.view().starts_with("\r\n")) {
      input_.consume(2);
      scanner_.reset();
    }
    const auto found = scanner_.scan(input_.view(), server_.limits);
    if (!found) {
      co_await refuse(found.error());
      co_return false;
    }
    if (*found) {
      length = **found;
      break;
    }
    const auto read = co_await read_more(input_cap_, deadline);
    if (read) continue;
    if (read.error().code == NetErrc::timed_out && !input_.empty()) {
      const Refusal refusal =
          make_refusal(408, "request_timeout", "the request head took too long");
      co_await refuse(refusal);
    }
    co_return false;
  }
  auto parsed = parse_head(input_.view().substr(0, length), server_.limits);
  if (!parsed) {
    co_await refuse(parsed.error());
    co_return false;
  }
  input_.consume(length);
  request_ = std::move(*parsed);
  had_request_ = true;
  co_return true;
}

Task<NetResult<void>> Connection::read_more(std::size_t cap, Duration deadline) {
  const std::span<char> room = input_.room(cap);
  const Duration left = deadline - server_.loop.now();
  const auto read = co_await stream_.read_some(room, left);
  if (!read) co_return std::unexpected(read.error());
  input_.add(*read);
  co_return NetResult<void>();
}

Task<void> Connection::refuse(Refusal refusal) {
  if (server_.on_refused) server_.on_refused(refusal.status, peer_address());
  ResponseHead head;
  head.status = refusal.status;
  head.fields.add("Content-Type", "application/json");
  const std::string body = error_body(refusal);
  AnswerFraming framing;
  framing.length = body.size();
  framing.connection = "close";
  text_.clear();
  append_head(text_, head, framing, server_.date());
  answer_ = Answer::finished;
  keep_alive_ = false;
  const auto sent = co_await send(text_, body, std::string_view());
  if (sent) co_await linger();
}

Task<void> Connection::linger() {
  stream_.close_sending();
  const Duration deadline = server_.loop.now() + kLinger;
  std::size_t discarded = 0;
  while (discarded < kLingerBytes) {
    input_.clear();
    const auto read = co_await read_more(kFirstPiece, deadline);
    if (!read) break;
    discarded += input_.size();
  }
}

Task<void> Connection::handle() {
  chunks_ = ChunkReader();
  body_left_ = request_.framing.length;
  body_asked_for_ = false;
  body_done_ = !request_.head.has_body;
  body_refusal_.reset();
  answer_ = Answer::none;
  coding_ = Coding::none;
  keep_alive_ = false;
  client_gone_ = false;
  in_exchange_ = true;
  ++server_.exchanges;

  std::string thrown;
  try {
    co_await server_.handler(*this);
  } catch (const std::exception& exception) {
    thrown = exception.what();
    if (thrown.empty()) thrown = "exception";
  } catch (...) {
    thrown = "unknown exception";
  }
  unwatch_client();
  if (!thrown.empty() && server_.on_exception) server_.on_exception(thrown);
  if (answer_ == Answer::none && !client_gone_) {
    co_await answer_for_handler();
  } else if (answer_ == Answer::streaming) {
    abort();
  }
  in_exchange_ = false;
  --server_.exchanges;
}

Task<void> Connection::answer_for_handler() {
  const Refusal refusal =
      body_refusal_.value_or(make_refusal(500, "internal_error", "internal error"));
  ResponseHead head;
  head.status = refusal.status;
  head.fields.add("Content-Type", "application/json");
  std::string body = error_body(refusal);
  co_await respond(std::move(head), std::move(body));
}

net::NetError Connection::refuse_body(const Refusal& refusal) {
  body_refusal_ = refusal;
  net::NetError error;
  error.text = refusal.message;
  return error;
}

Task<NetResult<std::string>> Connection::read_body() {
  if (body_asked_for_ || started()) co_return net::failure(NetErrc::failed, "read_body: too late");
  body_asked_for_ = true;
  if (body_done_) co_return std::string();
  stream_.stop_watching();
  if (request_.expects_continue && input_.empty()) {
    const auto sent =
        co_await send("HTTP/1.1 100 Continue\r\n\r\n", std::string_view(), std::string_view());
    if (!sent) co_return std::unexpected(sent.error());
  }
  if (!request_.framing.chunked && input_.size() >= request_.framing.length) {
    // It came with its head.
    std::string whole(input_.view().substr(0, request_.framing.length));
    input_.consume(whole.size());
    body_left_ = 0;
    body_done_ = true;
    if (gone_) arm_watch();
    co_return std::move(whole);
  }
  const Duration deadline = server_.loop.now() + server_.limits.body_timeout;
  auto reading = request_.framing.chunked ? read_chunks(deadline) : read_length(deadline);
  auto body = co_await std::move(reading);
  if (body) {
    body_done_ = true;
    if (gone_) arm_watch();
  } else if (body.error().code == NetErrc::timed_out) {
    body_refusal_ = make_refusal(408, "request_timeout", "the request body took too long");
  } else if (!body_refusal_) {
    client_has_gone();
  }
  co_return std::move(body);
}

Task<NetResult<std::string>> Connection::read_chunks(Duration deadline) {
  std::string body;
  for (;;) {
    std::string_view rest = input_.view();
    std::string_view data;
    ChunkReader::Result result = chunks_.next(rest, data);
    while (result == ChunkReader::Result::data) {
      if (data.size() > server_.limits.body_bytes - body.size()) {
        const Refusal refusal =
            make_refusal(413, "body_too_large", "the body is longer than the limit");
        co_return std::unexpected(refuse_body(refusal));
      }
      body.append(data);
      result = chunks_.next(rest, data);
    }
    input_.consume(input_.size() - rest.size());
    if (result == ChunkReader::Result::end) break;
    if (result == ChunkReader::Result::malformed) {
      const Refusal refusal = make_refusal(400, "bad_request", "malformed chunk");
      co_return std::unexpected(refuse_body(refusal));
    }
    const auto read = co_await read_more(kFirstPiece, deadline);
    if (!read) co_return std::unexpected(read.error());
  }
  co_return std::move(body);
}

Task<NetResult<std::string>> Connection::read_length(Duration deadline) {
  const auto length = static_cast<std::size_t>(request_.framing.length);
  const std::size_t had = std::min(input_.size(), length);
  std::string body(input_.view().substr(0, had));
  input_.consume(had);
  std::size_t filled = had;
  while (filled < length) {
    // Memory follows what has arrived, not what was announced.
    if (filled == body.size()) {
      body.resize(filled + std::min(length - filled, std::max(kFirstPiece, filled)));
    }
    const std::span<char> room(body.data() + filled, body.size() - filled);
    const Duration left = deadline - server_.loop.now();
    const auto read = co_await stream_.read_some(room, left);
    if (!read) co_return std::unexpected(read.error());
    filled += *read;
  }
  body_left_ = 0;
  co_return std::move(body);
}

Task<bool> Connection::skip_body() {
  const Duration deadline = server_.loop.now() + server_.limits.body_timeout;
  while (body_left_ > 0) {
    if (input_.empty()) {
      const auto read = co_await read_more(kFirstPiece, deadline);
      if (!read) co_return false;
    }
    const std::uint64_t skipped = std::min<std::uint64_t>(body_left_, input_.size());
    input_.consume(static_cast<std::size_t>(skipped));
    body_left_ -= skipped;
  }
  co_return true;
}

void Connection::close_idle(bool also_new) noexcept {
  // What has arrived already is still answered.
  if (idle_ && (had_request_ || also_new) && !stream_.readable()) stream_.close();
}

void Connection::end() noexcept {
  if (answer_ == Answer::streaming) {
    stream_.abort();
  } else {
    stream_.close();
  }
  if (in_exchange_) client_has_gone();
}

}  // namespace stint::http
