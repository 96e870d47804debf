#include "http/path.h"

#include <algorithm>
#include <array>

#include "http/syntax.h"

namespace stint::http {
namespace {

enum class Kind : unsigned char {
  refused,     // not in a path, in no form
  unreserved,  // the same with and without escape
  reserved,    // means one thing as it is, another when escaped
  escaped,     // may stand there escaped only
};

constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  // Escaped UTF-8 is fine, whatever it says.
  for (std::size_t c = 0x80; c < 0x100; ++c) kinds[c] = Kind::escaped;
  for (const char c : std::string_view(" \"%<>?#[]^`{|}")) {
    kinds[static_cast<unsigned char>(c)] = Kind::escaped;
  }
  for (const char c : std::string_view("!$&'()*+,;=:@/")) {
    kinds[static_cast<unsigned char>(c)] = Kind::reserved;
  }
  for (std::size_t c = '0'; c <= '9'; ++c) kinds[c] = Kind::unreserved;
  for (std::size_t c = 'a'; c <= 'z'; ++c) kinds[c] = Kind::unreserved;
  for (std::size_t c = 'A'; c <= 'Z'; ++c) kinds[c] = Kind::unreserved;
  for (const char c : std::string_view("-._~")) {
    kinds[static_cast<unsigned char>(c)] = Kind::unreserved;
  }
  return kinds;
}();

void append_escape(std::string& to, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  to += '%';
  to += kDigits[byte >> 4];
  to += kDigits[byte & 15];
}

// Percent-encoding in its normal form; nothing resolved yet.
std::optional<std::string> normalize_escapes(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c != '%') {
      const auto byte = static_cast<unsigned char>(c);
      const Kind kind = kKinds[byte];
      if (byte <= ' ' || byte >= 0x7f || c == '?' || c == '#' || kind == Kind::refused) {
        return std::nullopt;
      }
      if (kind == Kind::escaped) {
        append_escape(out, byte);
      } else {
        out += c;
      }
      continue;
    }
    if (path.size() - i < 3) return std::nullopt;
    const int high = hex_value(path[i + 1]);
    const int low = hex_value(path[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    const auto byte = static_cast<unsigned char>(high * 16 + low);
    switch (kKinds[byte]) {
      case Kind::refused:
        return std::nullopt;
      case Kind::unreserved:
        out += static_cast<char>(byte);
        break;
      case Kind::reserved:
      case Kind::escaped:
        append_escape(out, byte);
        break;
    }
    i += 2;
  }
  return out;
}

// As nearly all paths are. `path` starts with a slash.
bool is_normal(std::string_view path) noexcept {
  bool plain = true;
  char before = 'a';
  for (const char c : path) {
    plain &= c == '/' || kKinds[static_cast<unsigned char>(c)] == Kind::unreserved;
    plain &= before != '/' || (c != '/' && c != '.');
    before = c;
  }
  return plain;
}

}  // namespace

std::optional<std::string> normalize_path(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  if (is_normal(path)) return std::string(path);
  const std::optional<std::string> escaped = normalize_escapes(path);
  if (!escaped) return std::nullopt;

  std::string out;
  out.reserve(escaped->size());
  std::string_view rest = *escaped;
  bool folder = false;  // what `rest` stood for so far ends with a slash
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the slash
    const std::size_t length = std::min(rest.find('/'), rest.size());
    const std::string_view segment = rest.substr(0, length);
    rest.remove_prefix(length);
    folder = true;
    if (segment.empty() || segment == ".") continue;
    if (segment == "..") {
      if (out.empty()) return std::nullopt;
      out.resize(out.rfind('/'));
      continue;
    }
    out.append("/").append(segment);
    folder = false;
  }
  if (folder) out += '/';
  return out;
}

}  // namespace stint::http
