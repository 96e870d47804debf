#include "http/request_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "http/authority.h"
#include "http/path.h"
#include "http/server.h"
#include "http/syntax.h"

namespace stint::http {
namespace {

using Refused = std::unexpected<Refusal>;

Refused refuse(int status, std::string_view code, std::string_view message) {
  Refusal refusal;
  refusal.status = status;
  refusal.code = code;
  refusal.message = message;
  return Refused(refusal);
}
Refused bad_request(std::string_view message) { return refuse(400, "bad_request", message); }

// The line that starts there, without its CRLF, which HeadScanner has seen to be there.
std::string_view take_line(std::string_view& rest) noexcept {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end - 1);
  rest.remove_prefix(end + 1);
  return line;
}

// Sets method, target, path, query and version. `authority`: that of an absolute target.
std::expected<void, Refusal> parse_request_line(std::string_view line, RequestHead& head,
                                                std::optional<Authority>& authority) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return bad_request("malformed request line");
  }
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return bad_request("malformed method");
  if (!version.starts_with("HTTP/") || version.size() != 8 || version[6] != '.' ||
      version[5] < '0' || version[5] > '9' || version[7] < '0' || version[7] > '9') {
    return bad_request("malformed HTTP version");
  }
  if (version[5] != '1')
    return refuse(505, "http_version", "only HTTP/1.1 and HTTP/1.0 are spoken");
  head.minor_version = version[7] == '0' ? 0 : 1;
  head.method = method;
  if (method == "CONNECT") return refuse(501, "not_implemented", "there are no tunnels here");

  const bool visible = std::ranges::all_of(target, [](char c) { return c > ' ' && c < 0x7f; });
  if (target.empty() || !visible || target.contains('#')) return bad_request("malformed target");
  if (target == "*" && method == "OPTIONS") {
    head.target = head.path = target;
    return {};
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!iequal(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    authority = parse_authority(target.substr(0, end), scheme == "https://" ? 443 : 80);
    if (!authority || authority->host.empty()) return bad_request("malformed host in target");
    target.remove_prefix(end);
    if (!target.starts_with('/')) head.target = "/";
    break;
  }
  head.target += target;
  const std::size_t mark = std::min(head.target.find('?'), head.target.size());
  std::optional<std::string> path = normalize_path(std::string_view(head.target).substr(0, mark));
  if (!path) return bad_request("malformed path");
  head.path = std::move(*path);
  head.query = head.target.substr(mark);
  return {};
}

std::expected<void, Refusal> parse_field(std::string_view line, Fields& fields) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_request("header line without a colon");
  // Also refuses what makes two readers disagree: an empty name, white space before the colon or
  // at the start of the line (obsolete folding).
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad_request("malformed header name");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_field_value(value)) return bad_request("control byte in a header");
  fields.add(std::string(name), std::string(value));
  return {};
}

std::expected<Framing, Refusal> framing_of(const RequestHead& head, const ServerLimits& limits) {
  Framing framing;
  const std::size_t lengths = head.fields.count("Content-Length");
  const std::size_t encodings = head.fields.count("Transfer-Encoding");
  if (encodings > 0) {
    if (lengths > 0) return bad_request("both Content-Length and Transfer-Encoding");
    if (head.minor_version == 0) return bad_request("Transfer-Encoding in HTTP/1.0");
    const std::string_view encoding = head.fields.get("Transfer-Encoding").value_or("");
    if (encodings > 1 || !iequal(encoding, "chunked")) {
      return bad_request("Transfer-Encoding other than chunked");
    }
    framing.chunked = true;
    return framing;
  }
  if (lengths == 0) return framing;
  if (lengths > 1) return bad_request("more than one Content-Length");
  const std::string_view length = head.fields.get("Content-Length").value_or("");
  const auto [rest, error] =
      std::from_chars(length.data(), length.data() + length.size(), framing.length);
  // from_chars takes neither a sign nor a prefix for an unsigned number.
  if (error == std::errc::invalid_argument || rest != length.data() + length.size()) {
    return bad_request("malformed Content-Length");
  }
  if (error != std::errc{} || framing.length > limits.body_bytes) {
    return refuse(413, "body_too_large", "the body is longer than the limit");
  }
  return framing;
}

}  // namespace

std::expected<std::optional<std::size_t>, Refusal> HeadScanner::scan(std::string_view bytes,
                                                                     const ServerLimits& limits) {
  for (;;) {
    const std::size_t end = bytes.find('\n', scanned_);
    const bool complete = end != std::string_view::npos;
    // What does not count: the end of the line, as far as it has come.
    const std::size_t stop = complete ? end : bytes.size();
    const std::size_t ending = stop > line_start_ && bytes[stop - 1] == '\r' ? 1 : 0;
    const std::size_t line_bytes = stop - line_start_;
    if (fields_start_ == 0) {
      if (line_bytes > limits.request_line_bytes + ending) {
        return refuse(414, "uri_too_long", "the request line is longer than the limit");
      }
    } else if (stop - fields_start_ > limits.header_bytes + ending) {
      return refuse(431, "headers_too_large", "the headers are longer than the limit");
    }
    if (!complete) {
      scanned_ = bytes.size();
      return std::nullopt;
    }
    // A lone LF (or a lone CR, seen later as a control byte) ends a line for some readers only.
    if (ending == 0) {
      return bad_request("a line that does not end with CR LF");
    }
    scanned_ = end + 1;
    line_start_ = end + 1;
    if (fields_start_ == 0) {
      if (line_bytes == 1) return bad_request("empty request line");
      fields_start_ = end + 1;
    } else if (line_bytes == 1) {
      return end + 1;
    } else if (++count_ > limits.header_count) {
      return refuse(431, "too_many_headers", "more header lines than the limit");
    }
  }
}

std::expected<ParsedHead, Refusal> parse_head(std::string_view bytes, const ServerLimits& limits) {
  std::expected<ParsedHead, Refusal> result;
  RequestHead& head = result->head;
  std::optional<Authority> authority;
  const std::expected<void, Refusal> line = parse_request_line(take_line(bytes), head, authority);
  if (!line) return Refused(line.error());
  while (bytes.size() > 2) {
    const std::expected<void, Refusal> field = parse_field(take_line(bytes), head.fields);
    if (!field) return Refused(field.error());
  }

  const std::size_t hosts = head.fields.count("Host");
  if (hosts > 1) return bad_request("more than one Host");
  if (hosts == 0 && head.minor_version > 0) return bad_request("no Host");
  if (hosts == 1) {
    std::optional<Authority> named = parse_authority(*head.fields.get("Host"), 80);
    if (!named) return bad_request("malformed Host");
    // That of an absolute target replaces it (RFC 9112, section 3.2.2).
    if (!authority) authority = std::move(named);
  }
  if (authority) {
    head.fields.set("Host", authority->text());
    head.host = std::move(authority->host);
  }

  const std::expected<Framing, Refusal> framing = framing_of(head, limits);
  if (!framing) return Refused(framing.error());
  result->framing = *framing;
  head.has_body = framing->chunked || framing->length > 0;

  head.keep_alive = head.minor_version > 0 ? !has_token(head.fields, "Connection", "close")
                                           : has_token(head.fields, "Connection", "keep-alive");
  const std::optional<std::string> expectation = head.fields.joined("Expect");
  if (expectation && head.minor_version > 0) {
    if (!iequal(*expectation, "100-continue")) {
      return refuse(417, "expectation_failed", "an expectation other than 100-continue");
    }
    result->expects_continue = head.has_body;
  }
  return result;
}

}  // namespace stint::http
