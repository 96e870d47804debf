// Numbers as the scripts' struct.pack writes them: little-endian, quantities as doubles.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stint::store {

static_assert(std::endian::native == std::endian::little);

inline void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}

inline void put_u16(std::string& out, std::size_t value) {
  put_u8(out, static_cast<std::uint8_t>(value & 0xFF));
  put_u8(out, static_cast<std::uint8_t>(value >> 8 & 0xFF));
}

// `value`: below 2^53 in either direction, so that the double is exact.
inline void put_number(std::string& out, std::int64_t value) {
  const auto number = static_cast<double>(value);
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  out.append(bytes, sizeof(bytes));
}

// Reads in order. After a read beyond the end, or of a number that is no exact integer, it is no
// longer good(), and answers 0.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

  std::uint8_t u8() noexcept {
    const std::string_view bytes = take(1);
    return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes[0]);
  }
  std::uint16_t u16() noexcept {
    const unsigned low = u8();
    const unsigned high = u8();
    return static_cast<std::uint16_t>(low | high << 8U);
  }
  std::int64_t number() noexcept {
    constexpr double kEnd = 9007199254740992.0;  // 2^53
    double value = 0;
    const std::string_view bytes = take(sizeof(value));
    if (bytes.empty()) return 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    if (!(value > -kEnd && value < kEnd)) return fail();
    const auto integer = static_cast<std::int64_t>(value);
    return static_cast<double>(integer) == value ? integer : fail();
  }

 private:
  std::string_view take(std::size_t size) noexcept {
    if (!good_ || rest_.size() < size) {
      good_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::int64_t fail() noexcept {
    good_ = false;
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace stint::store
