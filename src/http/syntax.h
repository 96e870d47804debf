// The characters of HTTP (RFC 9110, section 5), for parsers and writers of messages.
#pragma once

#include <string>
#include <string_view>

namespace stint::http {

// A method or the name of a field.
[[nodiscard]] bool is_token(std::string_view text) noexcept;
// Visible ASCII, bytes of other encodings, blanks and tabs: no control bytes, so no line ends.
[[nodiscard]] bool is_field_value(std::string_view text) noexcept;
// Without blanks and tabs at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
[[nodiscard]] std::string lower_case(std::string_view text);
// Of one digit; -1 if it is none.
[[nodiscard]] int hex_value(char c) noexcept;

}  // namespace stint::http
