#include "http/response_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "http/syntax.h"

namespace stint::http {

namespace {

constexpr std::uint64_t kMaxLength = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The next member of a comma-separated list, taken off its front.
std::string_view take_member(std::string_view& list) noexcept {
  const std::size_t comma = list.find(',');
  const std::string_view member = trimmed(list.substr(0, comma));
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return member;
}

std::optional<std::uint64_t> parse_length(std::string_view text) noexcept {
  std::uint64_t length = 0;
  // Accepts digits only: no sign, no space.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size() || length > kMaxLength) {
    return std::nullopt;
  }
  return length;
}

}  // namespace

std::expected<ResponseParser::Event, std::string> ResponseParser::next(std::string_view& piece) {
  body_ = {};
  switch (state_) {
    case State::status_line:
    case State::fields:
      return next_in_head(piece);
    case State::body_of_length:
    case State::body_until_close:
    case State::chunks:
      return next_in_body(piece);
    case State::end:
      break;
  }
  return Event::end;
}

std::expected<ResponseParser::Event, std::string> ResponseParser::next_in_head(
    std::string_view& piece) {
  while (!piece.empty()) {
    begun_ = true;
    const std::size_t line_feed = piece.find('\n');
    const std::string_view part =
        piece.substr(0, line_feed == std::string_view::npos ? line_feed : line_feed + 1);
    if (part.size() > head_bytes_left_) return std::unexpected("a head above the bound");
    head_bytes_left_ -= part.size();
    piece.remove_prefix(part.size());
    if (line_feed == std::string_view::npos) {
      line_ += part;
      // What is no HTTP at all may never send a line end.
      if (state_ == State::status_line && !std::string_view(line_).starts_with("HTTP/1.") &&
          !std::string_view("HTTP/1.").starts_with(line_)) {
        return std::unexpected("no status line");
      }
      return Event::need_more;
    }

    std::string_view line = part;
    if (!line_.empty()) {
      line_ += part;
      line = line_;
    }
    line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    Complaint complaint = take_line(line);
    if (complaint) return std::unexpected(std::move(*complaint));
    line_.clear();
    if (state_ > State::fields) return Event::head;
  }
  return Event::need_more;
}

std::expected<ResponseParser::Event, std::string> ResponseParser::next_in_body(
    std::string_view& piece) {
  if (state_ == State::chunks) {
    switch (chunks_.next(piece, body_)) {
      case ChunkReader::Result::need_more:
        return Event::need_more;
      case ChunkReader::Result::data:
        return Event::body;
      case ChunkReader::Result::malformed:
        return std::unexpected("malformed chunks");
      case ChunkReader::Result::end:
        break;
    }
    state_ = State::end;
    return Event::end;
  }
  if (piece.empty()) return Event::need_more;
  body_ = std::exchange(piece, {});
  if (state_ == State::body_of_length) {
    if (body_.size() > body_left_) {
      piece = body_.substr(body_left_);
      body_ = body_.substr(0, body_left_);
    }
    body_left_ -= body_.size();
    if (body_left_ == 0) state_ = State::end;
  }
  return Event::body;
}

ResponseParser::Complaint ResponseParser::take_line(std::string_view line) {
  if (state_ == State::status_line) return take_status_line(line);
  return line.empty() ? take_end_of_head() : take_field(line);
}

ResponseParser::Complaint ResponseParser::take_status_line(std::string_view line) {
  // HTTP/1.1 200 OK; some servers leave out the space of an empty reason.
  constexpr std::string_view kProtocol = "HTTP/1.";
  constexpr std::size_t kStatusAt = kProtocol.size() + 2;
  if (!line.starts_with(kProtocol) || line.size() < kStatusAt + 3 ||
      !is_digit(line[kProtocol.size()]) || line[kProtocol.size() + 1] != ' ') {
    return "no status line";
  }
  const std::string_view status = line.substr(kStatusAt, 3);
  const std::string_view rest = line.substr(kStatusAt + 3);
  if (!std::ranges::all_of(status, is_digit) || status[0] == '0' ||
      (!rest.empty() && rest[0] != ' ')) {
    return "a malformed status";
  }
  if (!is_field_value(rest)) return "a control byte in the status line";
  minor_version_ = line[kProtocol.size()] == '0' ? 0 : 1;
  head_ = {};
  head_.status = (status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0');
  head_.reason = trimmed(rest);
  state_ = State::fields;
  return std::nullopt;
}

ResponseParser::Complaint ResponseParser::take_field(std::string_view line) {
  if (line[0] == ' ' || line[0] == '\t') return "a folded field line";
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return "a field line without a colon";
  const std::string_view name = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_token(name)) return "a malformed field name";
  if (!is_field_value(value)) return "a control byte in a field";
  head_.fields.add(std::string(name), std::string(value));
  return std::nullopt;
}

ResponseParser::Complaint ResponseParser::take_end_of_head() {
  if (head_.status < 200) {
    // It is not for us to change the protocol: no request of ours offers that.
    if (head_.status == 101) return "a change of protocol that nobody asked for";
    state_ = State::status_line;
    return std::nullopt;
  }
  if (Complaint complaint = read_length()) return complaint;
  if (Complaint complaint = read_transfer_encoding()) return complaint;
  keep_alive_ = !has_token(head_.fields, "Connection", "close") &&
                (minor_version_ > 0 || has_token(head_.fields, "Connection", "keep-alive"));
  const bool chunked = head_.fields.get("Transfer-Encoding").has_value();

  if (to_ == ResponseTo::head_request || head_.status == 204 || head_.status == 304) {
    if (head_.status == 204) {
      // A body that the server announces all the same would be taken for the next response.
      if (chunked || length_.value_or(0) > 0) keep_alive_ = false;
      length_.reset();
    }
    state_ = State::end;
  } else if (chunked) {
    state_ = State::chunks;
  } else if (length_) {
    body_left_ = *length_;
    state_ = body_left_ > 0 ? State::body_of_length : State::end;
  } else {
    keep_alive_ = false;
    state_ = State::body_until_close;
  }
  return std::nullopt;
}

ResponseParser::Complaint ResponseParser::read_length() {
  const std::optional<std::string> joined = head_.fields.joined("Content-Length");
  if (!joined) return std::nullopt;
  std::string_view list = *joined;
  do {
    const bool more_follow = list.contains(',');
    const auto length = parse_length(take_member(list));
    if (!length || (more_follow && list.empty())) return "a malformed Content-Length";
    if (length_ && *length_ != *length) return "several Content-Lengths";
    length_ = length;
  } while (!list.empty());
  head_.fields.set("Content-Length", std::to_string(*length_));
  return std::nullopt;
}

ResponseParser::Complaint ResponseParser::read_transfer_encoding() {
  const std::optional<std::string> encoding = head_.fields.joined("Transfer-Encoding");
  if (!encoding) return std::nullopt;
  if (length_) return "both Transfer-Encoding and Content-Length";
  if (minor_version_ == 0) return "Transfer-Encoding in HTTP/1.0";
  if (!iequal(*encoding, "chunked")) return "an unknown Transfer-Encoding";
  return std::nullopt;
}

}  // namespace stint::http
