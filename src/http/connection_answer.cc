// How a connection answers.
#include <array>
#include <charconv>
#include <utility>

#include "http/answer_head.h"
#include "http/connection.h"

namespace stint::http {
namespace {

using net::NetErrc;
using net::NetError;
using net::NetResult;
using net::Task;

// A body that the handler did not want is read over if no longer than this, else the connection
// ends: cheaper for both sides than the rest of a long upload.
constexpr std::uint64_t kSkippedBody = std::uint64_t{64} * 1024;

}  // namespace

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

void Connection::compose(ResponseHead head, std::optional<std::uint64_t> content_length,
                         bool whole) {
  // Anything else is no final answer: a mistake of the handler.
  if (head.status < 200 || head.status > 999) head.status = 500;
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
  compose(std::move(head), body.size(), /*whole=*/true);
  if (coding_ == Coding::none) body.clear();
  net::Stream::Parts parts{text_, body, std::string_view()};
  auto sent = stream_.write_now(parts);
  if (!sent) co_return co_await send(parts[0], parts[1], parts[2]);
  if (!*sent) broken_off();
  co_return std::move(*sent);
}

Task<NetResult<void>> Connection::start(ResponseHead head,
                                        std::optional<std::uint64_t> content_length) {
  std::optional<NetError> refused = refuse_to_answer();
  if (refused) co_return std::unexpected(std::move(*refused));
  answer_ = Answer::streaming;
  compose(std::move(head), content_length, /*whole=*/false);
  co_return co_await send(text_, std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::write(std::string_view bytes) {
  if (client_gone_) co_return net::failure(NetErrc::reset, "the client has gone");
  if (answer_ != Answer::streaming)
    co_return net::failure(NetErrc::failed, "write: no answer under way");
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
      co_return net::failure(NetErrc::failed, "write: more than the announced length");
    }
    answer_left_ -= bytes.size();
  }
  co_return co_await send(bytes, std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::finish() {
  if (client_gone_) co_return net::failure(NetErrc::reset, "the client has gone");
  if (answer_ != Answer::streaming)
    co_return net::failure(NetErrc::failed, "finish: no answer under way");
  if (coding_ == Coding::length && answer_left_ > 0) {
    abort();
    co_return net::failure(NetErrc::failed, "finish: less than the announced length");
  }
  answer_ = Answer::finished;
  if (coding_ != Coding::chunked) co_return NetResult<void>();
  co_return co_await send("0\r\n\r\n", std::string_view(), std::string_view());
}

Task<NetResult<void>> Connection::send(std::string_view first, std::string_view second,
                                       std::string_view third) {
  auto sent = co_await stream_.write(first, second, third, server_.limits.write_timeout);
  if (!sent) broken_off();
  co_return std::move(sent);
}

void Connection::broken_off() noexcept {
  answer_ = Answer::broken;
  stream_.abort();
  client_has_gone();
}

void Connection::abort() noexcept {
  answer_ = Answer::broken;
  gone_ = nullptr;
  stream_.abort();
}

}  // namespace stint::http
