#include "limit/bucket_key.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace stint::limit {
namespace {

constexpr char kHex[] = "0123456789ABCDEF";

constexpr std::array<bool, 256> make_plain() {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 0x7F; ++byte) plain[byte] = true;
  for (const char special : {'{', '}', '%', ':', '='}) {
    plain[static_cast<unsigned char>(special)] = false;
  }
  return plain;
}
constexpr auto kPlain = make_plain();

bool is_c1_control(std::string_view sequence) noexcept {
  return sequence.size() == 2 && sequence[0] == '\xC2' &&
         static_cast<unsigned char>(sequence[1]) < 0xA0;
}

void append_hex(std::string& out, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  out += '%';
  out += kHex[value >> 4];
  out += kHex[value & 15];
}

// The key of a text that is longer than kMaxKey.
std::string hashed(std::string_view text, std::size_t policy_size) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string key(text.substr(0, policy_size));
  key += ":%#";
  for (std::size_t i = 0; i < 16; ++i) {
    key += kHex[digest[i] >> 4];
    key += kHex[digest[i] & 15];
  }
  return key;
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const std::size_t length = base::utf8_character(text);
    if (length <= 1) {  // not UTF-8, or ASCII that is not plain
      append_hex(out, text[0]);
      text.remove_prefix(1);
    } else if (is_c1_control(text.substr(0, length))) {
      append_hex(out, text[0]);
      append_hex(out, text[1]);
      text.remove_prefix(length);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
}

BucketKeyWriter::BucketKeyWriter(std::string& out, std::string_view escaped_policy)
    : out_(out), begin_(out.size()), policy_size_(escaped_policy.size()) {
  out_ += escaped_policy;
}

void BucketKeyWriter::add(std::string_view escaped_dimension,
                          std::optional<std::string_view> value) {
  out_ += ':';
  out_ += escaped_dimension;
  if (!value) return;
  out_ += '=';
  append_escaped(out_, *value);
}

KeySpan BucketKeyWriter::finish() {
  const std::size_t size = out_.size() - begin_;
  if (size <= kMaxKey) return {begin_, size, begin_, size};
  const std::size_t key_begin = out_.size();
  out_ += hashed(std::string_view(out_).substr(begin_, size), policy_size_);
  return {begin_, size, key_begin, out_.size() - key_begin};
}

std::string key_of(std::string_view text) {
  if (text.size() <= kMaxKey) return std::string(text);
  return hashed(text, std::min(text.find(':'), text.size()));
}

std::string overflow_key(std::string_view escaped_policy) {
  return std::string(escaped_policy) + ":%overflow";
}

bool matches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last `*` seen, and what it stands for so far
  std::size_t star_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace stint::limit
