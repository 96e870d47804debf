#include "http/connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <exception>
#include <tuple>
#include <utility>

#include "http/answer_head.h"

namespace stint::http {
namespace {

using net::NetErrc;
using net::NetError;
using net::NetResult;
using net::Task;

// A body that the handler did not want is read over if no longer than this, else the connection
// ends: cheaper for both sides than the rest of a long upload.
constexpr std::uint64_t kSkippedBody = 64 * 1024;
// How long a client may take to read the last answer of a connection, and how much it may still
// send before it does.
constexpr Duration kLinger = std::chrono::seconds{2};
constexpr std::size_t kLingerBytes = 32 * 1024 * 1024;
// How often to look for the end behind pipelined bytes that have no room.
constexpr Duration kLookAgain = std::chrono::milliseconds{200};
// Pieces in which a body of known length is read, at first.
constexpr std::size_t kFirstPiece = 16 * 1024;

std::unexpected<NetError> error(NetErrc code, std::string_view text) {
  NetError result;
  result.code = code;
  result.text = text;
  return std::unexpected(std::move(result));
}

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
  idle_ = true;
  const auto readable = co_await stream_.wait_readable(server_.limits.idle_timeout);
  idle_ = false;
  co_return readable.has_value();
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
  if (!in_exchange_ && server_.on_refused) server_.on_refused(refusal.status, peer_address());
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
  if (sent && !in_exchange_) co_await linger();
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
    ResponseHead head;
    head.status = 500;
    head.fields.add("Content-Type", "application/json");
    const Refusal refusal = make_refusal(500, "internal_error", "internal error");
    std::string body = error_body(refusal);
    co_await respond(std::move(head), std::move(body));
  } else if (answer_ == Answer::streaming) {
    abort();
  }
  in_exchange_ = false;
  --server_.exchanges;
}

Task<NetResult<std::string>> Connection::read_body() {
  if (body_asked_for_ || started()) co_return error(NetErrc::failed, "read_body: too late");
  body_asked_for_ = true;
  if (body_done_) co_return std::string();
  stream_.stop_watching();
  if (request_.expects_continue && input_.empty()) {
    const auto sent =
        co_await send("HTTP/1.1 100 Continue\r\n\r\n", std::string_view(), std::string_view());
    if (!sent) co_return std::unexpected(sent.error());
  }
  const Duration deadline = server_.loop.now() + server_.limits.body_timeout;
  auto reading = request_.framing.chunked ? read_chunks(deadline) : read_length(deadline);
  auto body = co_await std::move(reading);
  if (body) {
    body_done_ = true;
    if (gone_) arm_watch();
  } else if (body.error().code == NetErrc::timed_out) {
    const Refusal refusal = make_refusal(408, "request_timeout", "the request body took too long");
    co_await refuse(refusal);
  } else if (!started()) {
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
        co_await refuse(refusal);
        co_return error(NetErrc::failed, refusal.message);
      }
      body.append(data);
      result = chunks_.next(rest, data);
    }
    input_.consume(input_.size() - rest.size());
    if (result == ChunkReader::Result::end) break;
    if (result == ChunkReader::Result::malformed) {
      const Refusal refusal = make_refusal(400, "bad_request", "malformed chunk");
      co_await refuse(refusal);
      co_return error(NetErrc::failed, refusal.message);
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
  if (body_done_) co_return true;
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

bool Connection::without_body(int status) const noexcept {
  return request_.head.method == "HEAD" || status == 204 || status == 304;
}

bool Connection::can_keep_alive() const noexcept {
  if (!request_.head.keep_alive || server_.draining) return false;
  if (body_done_) return true;
  // A client that was not told to continue may send the body or not: nobody can know.
  return !request_.framing.chunked && !request_.expects_continue && !body_asked_for_ &&
         body_left_ <= kSkippedBody;
}

void Connection::compose(const ResponseHead& head, std::optional<std::uint64_t> content_length,
                         bool whole) {
  AnswerFraming framing;
  const bool bodyless = without_body(head.status);
  keep_alive_ = can_keep_alive();
  coding_ = Coding::none;
  if (head.status == 204 || (head.status == 304 && whole)) {
    // No length: none may be sent with 204, and with 304 it would be that of another answer.
  } else if (content_length) {
    framing.length = content_length;
    if (!bodyless) {
      coding_ = Coding::length;
      answer_left_ = *content_length;
    }
  } else if (!bodyless && request_.head.minor_version > 0) {
    framing.chunked = true;
    coding_ = Coding::chunked;
  } else if (!bodyless) {
    coding_ = Coding::until_close;
    keep_alive_ = false;
  }
  if (!keep_alive_) {
    framing.connection = "close";
  } else if (request_.head.minor_version == 0) {
    framing.connection = "keep-alive";
  }
  text_.clear();
  append_head(text_, head, framing, server_.date());
}

std::optional<NetError> Connection::refuse_to_answer() const {
  NetError result;
  if (client_gone_) {
    result.code = NetErrc::reset;
    result.text = "the client has gone";
    return result;
  }
  if (started()) {
    result.text = "the request has been answered";
    return result;
  }
  return std::nullopt;
}

Task<NetResult<void>> Connection::respond(ResponseHead head, std::string body) {
  std::optional<NetError> refused = refuse_to_answer();
  if (refused) co_return std::unexpected(std::move(*refused));
  answer_ = Answer::finished;
  compose(head, body.size(), /*whole=*/true);
  if (coding_ == Coding::none) body.clear();
  co_return co_await send(text_, body, std::string_view());
}

Task<NetResult<void>> Connection::start(ResponseHead head,
                                        std::optional<std::uint64_t> content_length) {
  std::optional<NetError> refused = refuse_to_answer();
  if (refused) co_return std::unexpected(std::move(*refused));
  answer_ = Answer::streaming;
  compose(head, content_length, /*whole=*/false);
  co_return co_await send(text_, std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::write(std::string_view bytes) {
  if (client_gone_) co_return error(NetErrc::reset, "the client has gone");
  if (answer_ != Answer::streaming) co_return error(NetErrc::failed, "write: no answer under way");
  if (bytes.empty() || coding_ == Coding::none) co_return NetResult<void>();
  if (coding_ == Coding::chunked) {
    std::array<char, 16> digits;
    const auto written =
        std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16);
    text_.assign(digits.data(), written.ptr).append("\r\n");
    co_return co_await send(text_, bytes, "\r\n");
  }
  if (coding_ == Coding::length) {
    if (bytes.size() > answer_left_) {
      abort();
      co_return error(NetErrc::failed, "write: more than the announced length");
    }
    answer_left_ -= bytes.size();
  }
  co_return co_await send(bytes, std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::finish() {
  if (client_gone_) co_return error(NetErrc::reset, "the client has gone");
  if (answer_ != Answer::streaming) co_return error(NetErrc::failed, "finish: no answer under way");
  if (coding_ == Coding::length && answer_left_ > 0) {
    abort();
    co_return error(NetErrc::failed, "finish: less than the announced length");
  }
  answer_ = Answer::finished;
  if (coding_ != Coding::chunked) co_return NetResult<void>();
  co_return co_await send("0\r\n\r\n", std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::send(std::string_view first, std::string_view second,
                                       std::string_view third) {
  auto sent = co_await stream_.write(first, second, third, server_.limits.write_timeout);
  if (!sent) {
    answer_ = Answer::broken;
    stream_.abort();
    client_has_gone();
  }
  co_return std::move(sent);
}

void Connection::abort() noexcept {
  answer_ = Answer::broken;
  gone_ = nullptr;
  stream_.abort();
}

void Connection::watch_client(std::move_only_function<void()> gone) {
  gone_ = std::move(gone);
  if (client_gone_ || !stream_.open()) {
    client_has_gone();
    return;
  }
  arm_watch();
}

void Connection::arm_watch() {
  stream_.watch([this](bool ended) {
    if (ended) {
      client_has_gone();
    } else {
      look_at_client();
    }
  });
}

// The client sent something while the handler waits: a pipelined request, or a body that nobody
// has asked for yet. It is taken, within the limits of a head, to see what comes behind it.
void Connection::look_at_client() {
  const std::span<char> room = input_.room(input_cap_);
  if (!room.empty()) {
    const std::optional<NetResult<std::size_t>> read = stream_.read_waiting(room);
    if (read && !read->has_value()) {
      client_has_gone();
      return;
    }
    if (read) input_.add(**read);
    arm_watch();
    return;
  }
  if (stream_.peer_ended()) {
    client_has_gone();
    return;
  }
  if (!look_again_) {
    look_again_ =
        std::make_unique<net::Deadline>(server_.loop.deadlines(), [this] { look_at_client(); });
  }
  look_again_->arm(server_.loop.now() + kLookAgain);
}

void Connection::client_has_gone() noexcept {
  client_gone_ = true;
  auto gone = std::exchange(gone_, nullptr);
  unwatch_client();
  if (gone) gone();
}

void Connection::unwatch_client() noexcept {
  gone_ = nullptr;
  stream_.stop_watching();
  if (look_again_) look_again_->disarm();
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
