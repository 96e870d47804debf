// The low-level digests of OpenSSL are deprecated for being low-level; the others look a digest up
// under a lock at every call, and hash_key runs for every request.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "config/identity.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace stint::config {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_hex(std::string& out, std::uint8_t byte) {
  out += kHexDigits[byte >> 4U];
  out += kHexDigits[byte & 0xFU];
}

int hex_value(char c) noexcept {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c + ('a' - 'A'));
  const std::size_t at = kHexDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

KeyHash hash_key(std::string_view key) {
  KeyHash hash{};
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, key.data(), key.size());
  SHA256_Final(hash.data(), &context);
  return hash;
}

std::string to_hex(const KeyHash& hash) {
  std::string text;
  for (const std::uint8_t byte : hash) append_hex(text, byte);
  return text;
}

std::optional<KeyHash> parse_key_hash(std::string_view hex) {
  KeyHash hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return hash;
}

std::string derived_id(std::string_view collection, std::string_view name) {
  // 6ba7b811-9dad-11d1-80b4-00c04fd430c8
  constexpr std::array<std::uint8_t, 16> kUrlNamespace{0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad,
                                                       0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0,
                                                       0x4f, 0xd4, 0x30, 0xc8};
  std::string named(collection);
  named += '/';
  named += name;
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA_CTX context;
  SHA1_Init(&context);
  SHA1_Update(&context, kUrlNamespace.data(), kUrlNamespace.size());
  SHA1_Update(&context, named.data(), named.size());
  SHA1_Final(digest.data(), &context);
  digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0FU) | 0x50U);
  digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3FU) | 0x80U);

  std::string id;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    append_hex(id, digest[i]);
  }
  return id;
}

std::optional<std::string> check_id(std::string_view id) {
  constexpr std::size_t kLongest = 48;
  const auto visible = [](char c) { return c > ' ' && c < '\x7F' && c != '/'; };
  if (!id.empty() && id.size() <= kLongest && std::ranges::all_of(id, visible)) return std::nullopt;
  return "must be 1 to 48 visible ASCII characters without '/'";
}

}  // namespace stint::config
