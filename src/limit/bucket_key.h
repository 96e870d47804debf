// Bucket keys: the name of a bucket as text, one for each list of attributes, never two alike.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stint::limit {

// The longest key that is kept as it reads; a longer one has its values hashed.
inline constexpr std::size_t kMaxKey = 120;

// Appends `text` with `{`, `}`, `%`, `:`, `=`, control bytes and bytes that are not part of valid
// UTF-8 percent-escaped (upper-case hex). Two texts never give the same result.
void append_escaped(std::string& out, std::string_view text);

// Where a key stands in the text it was written to.
struct KeySpan {
  // The whole text: what listings show and patterns match.
  std::size_t text_begin = 0;
  std::size_t text_size = 0;
  // The key: the same, or when that is longer than kMaxKey the policy and `:%#` and 32 hex digits
  // (the first 128 bits of SHA-256 of the text). `%#` starts no escape, so it meets no text.
  std::size_t key_begin = 0;
  std::size_t key_size = 0;
};

// Writes one key at the end of a text: `<policy id>`, then `:<dimension>=<value>` for each part,
// `:<dimension>` for an absent value. The separators are escaped inside the parts, so the text
// can be read back in one way only: different lists of parts give different keys.
class BucketKeyWriter {
 public:
  // `escaped_policy`: append_escaped(policy id). `out` must outlive the writer.
  BucketKeyWriter(std::string& out, std::string_view escaped_policy);

  // `escaped_dimension`: append_escaped(name).
  void add(std::string_view escaped_dimension, std::optional<std::string_view> value);

  [[nodiscard]] KeySpan finish();

 private:
  std::string& out_;
  std::size_t begin_;
  std::size_t policy_size_;
};

// The key of a text that was written so: that of a bucket in a listing, if it is not cut.
[[nodiscard]] std::string key_of(std::string_view text);

// The bucket that new keys of a policy share when the memory store is full. `%overflow` starts no
// escape, so it meets no other key.
[[nodiscard]] std::string overflow_key(std::string_view escaped_policy);

// Whether `text` matches `pattern`: `*` stands for any bytes, `?` for one. Takes time in
// proportion to the product of the lengths at worst.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace stint::limit
