#include "store/redis/layout.h"

#include <array>
#include <cstddef>

#include "store/redis/bytes.h"

namespace stint::store {
namespace {

// The numbers in the layout, whatever the enumerations in the program become.
constexpr std::array kUnits = {Unit::requests, Unit::tokens, Unit::input_tokens,
                               Unit::output_tokens, Unit::concurrency};
constexpr std::array kAlgorithms = {Algorithm::fixed_window, Algorithm::sliding_window,
                                    Algorithm::sliding_log, Algorithm::token_bucket,
                                    Algorithm::concurrency};
constexpr std::int64_t kVersion = 1;

template <class Array, class Value>
std::int64_t place_in(const Array& array, Value value) noexcept {
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array[i] == value) return static_cast<std::int64_t>(i);
  }
  return 0;
}

std::size_t numbers_of(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::fixed_window:
      return 2;
    case Algorithm::sliding_window:
    case Algorithm::sliding_log:
      return 3;
    case Algorithm::token_bucket:
      return 4;
    case Algorithm::concurrency:
      return 0;
  }
  return 0;
}

std::optional<StoredBucket::Stored> parse_limit(ByteReader& reader) {
  const auto name = name_of(reader.number());
  Limit limit;
  limit.quota = reader.number();
  if (!reader.good() || !name) return std::nullopt;
  limit.unit = name->unit;
  limit.algorithm = name->algorithm;
  limit.window = name->window;
  if (name->algorithm == Algorithm::token_bucket) limit.burst = reader.number();
  auto spec = limit::compile(limit);
  if (!spec) return std::nullopt;
  StoredBucket::Stored stored{.spec = *spec};
  const std::size_t count = numbers_of(name->algorithm);
  for (std::size_t i = 0; i < count; ++i) stored.numbers[i] = reader.number();
  if (!reader.good()) return std::nullopt;
  return stored;
}

}  // namespace

std::string keys_begin(std::string_view key_prefix) { return std::string(key_prefix) + ":rl:1:"; }

void append_counters_key(std::string& out, std::string_view begin, std::string_view bucket) {
  out.append(begin).append("{").append(bucket).append("}");
}

void append_leases_key(std::string& out, std::string_view begin, std::string_view bucket) {
  append_counters_key(out, begin, bucket);
  out.append(":leases");
}

void append_log_key(std::string& out, std::string_view begin, std::string_view bucket,
                    Duration window) {
  append_counters_key(out, begin, bucket);
  out.append(":log:").append(std::to_string(window.count()));
}

std::optional<std::string_view> bucket_of(std::string_view begin, std::string_view counters_key) {
  if (!counters_key.starts_with(begin)) return std::nullopt;
  counters_key.remove_prefix(begin.size());
  if (!counters_key.starts_with('{') || !counters_key.ends_with('}')) return std::nullopt;
  return counters_key.substr(1, counters_key.size() - 2);
}

std::int64_t code_of(const limit::LimitName& name) noexcept {
  return name.window.count() * 64 + place_in(kUnits, name.unit) * 8 +
         place_in(kAlgorithms, name.algorithm);
}

std::optional<limit::LimitName> name_of(std::int64_t code) noexcept {
  const auto algorithm = static_cast<std::size_t>(code & 7);
  const auto unit = static_cast<std::size_t>(code >> 3 & 7);
  if (code < 0 || algorithm >= kAlgorithms.size() || unit >= kUnits.size()) return std::nullopt;
  return limit::LimitName{kUnits[unit], kAlgorithms[algorithm], Duration{code / 64}};
}

std::optional<StoredBucket> parse_bucket(std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint8_t version = reader.u8();
  const std::uint8_t flags = reader.u8();
  (void)reader.number();  // its birth
  const std::uint8_t count = reader.u8();
  if (!reader.good() || version != kVersion || flags > 1) return std::nullopt;
  StoredBucket bucket;
  for (std::size_t i = 0; i < count; ++i) {
    auto limit = parse_limit(reader);
    if (!limit) return std::nullopt;
    bucket.limits.push_back(*limit);
  }
  if (flags == 1) {
    bucket.text = reader.rest();
  } else if (!reader.rest().empty()) {
    return std::nullopt;
  }
  return bucket;
}

}  // namespace stint::store
