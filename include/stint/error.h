// Errors as values: what every fallible call of stint returns.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace stint {

// A closed set: callers may switch over it without a default.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  // a value outside what its declaration allows; `Error::field` names it
  already_settled,   // the reservation was committed, released or cancelled before
  not_found,         // what was asked for does not exist
  already_exists,    // what was to be made is there already
  unavailable,       // the store could not answer in time
};

[[nodiscard]] constexpr const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::already_settled:
      return "already_settled";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::unavailable:
      return "unavailable";
  }
  return "unknown";
}

// Why a call failed. A call that fails changed no counter.
struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string field{};    // the offending input, as a path ("limits[2].quota"); empty if none
  std::string message{};  // one sentence for a person, without the field's name
};

// "limits[2].quota: must not be negative"
[[nodiscard]] inline std::string to_string(const Error& error) {
  return error.field.empty() ? error.message : error.field + ": " + error.message;
}

[[nodiscard]] inline std::unexpected<Error> invalid(std::string field, std::string message) {
  return std::unexpected(Error{ErrorCode::invalid_argument, std::move(field), std::move(message)});
}

template <class T>
using Result = std::expected<T, Error>;

}  // namespace stint
