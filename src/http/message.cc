#include "http/message.h"

#include <algorithm>
#include <utility>

#include "http/syntax.h"

namespace stint::http {
namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_hop_by_hop(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {
      "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
  };
  constexpr std::string_view kPrefix = "Proxy-";
  return std::ranges::any_of(kNames, [&](std::string_view known) { return iequal(name, known); }) ||
         iequal(name.substr(0, kPrefix.size()), kPrefix);
}

}  // namespace

bool iequal_bytes(const char* a, const char* b, std::size_t size) noexcept {
  return std::equal(a, a + size, b, [](char x, char y) { return x == y || lower(x) == lower(y); });
}

std::optional<std::string> Fields::joined(std::string_view name) const {
  std::optional<std::string> result;
  for (const Field& field : fields_) {
    if (!iequal(field.name, name)) continue;
    if (result) {
      result->append(", ").append(field.value);
    } else {
      result = field.value;
    }
  }
  return result;
}

std::size_t Fields::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields_, [name](const Field& field) { return iequal(field.name, name); }));
}

void Fields::set(std::string name, std::string value) {
  const auto first = std::ranges::find_if(
      fields_, [&name](const Field& field) { return iequal(field.name, name); });
  if (first == fields_.end()) {
    add(std::move(name), std::move(value));
    return;
  }
  const auto others = std::remove_if(
      first + 1, fields_.end(), [&name](const Field& field) { return iequal(field.name, name); });
  fields_.erase(others, fields_.end());
  first->name = std::move(name);
  first->value = std::move(value);
}

void Fields::remove(std::string_view name) {
  std::erase_if(fields_, [name](const Field& field) { return iequal(field.name, name); });
}

bool has_token(const Fields& fields, std::string_view name, std::string_view token) noexcept {
  for (const Field& field : fields.all()) {
    if (!iequal(field.name, name)) continue;
    std::string_view rest = field.value;
    for (;;) {
      const std::size_t comma = rest.find(',');
      if (iequal(trimmed(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

void remove_hop_by_hop(Fields& fields) {
  std::vector<std::string> named;
  for (const Field& field : fields.all()) {
    if (!iequal(field.name, "Connection")) continue;
    std::string_view rest = field.value;
    for (;;) {
      const std::size_t comma = rest.find(',');
      named.emplace_back(trimmed(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  std::erase_if(fields.all(), [&named](const Field& field) {
    return is_hop_by_hop(field.name) || std::ranges::any_of(named, [&](const std::string& name) {
             return iequal(name, field.name);
           });
  });
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 207:
      return "Multi-Status";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 424:
      return "Failed Dependency";
    case 425:
      return "Too Early";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 529:
      return "Overloaded";
    default:
      return "";
  }
}

}  // namespace stint::http
