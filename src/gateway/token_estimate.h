// What the input of a request is worth in tokens before anybody has counted them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace stint::gateway {

struct TokenEstimateOptions {
  // Tokens taken for each image, audio or file part of a message, whatever its size. 0: such
  // parts cost nothing.
  std::int64_t tokens_per_media_part = 1'000;
};

// What is wrong with a request's body; for a 400.
struct RequestFault {
  std::string message;  // sentences for a person: what is wrong and what to do
  std::string param{};  // the member at fault ("max_tokens"); empty if it is the body as a whole
};

// Bytes / 4, rounded up.
[[nodiscard]] constexpr std::int64_t tokens_of_text(std::uint64_t utf8_bytes) noexcept {
  return static_cast<std::int64_t>(utf8_bytes / 4 + (utf8_bytes % 4 != 0 ? 1 : 0));
}

// The deepest nesting of arrays and objects that a body may have.
inline constexpr std::size_t kMaxJsonDepth = 128;

// Checks that `body` is one JSON object in UTF-8, and estimates its input tokens in the same
// pass: the UTF-8 bytes of its text / 4, rounded up once, plus a flat number for each media part,
// plus the length of token id lists. Needs no memory that grows with the body.
//
// Text is
//   messages    every string but those that are no text (role, type, id, tool_call_id, detail);
//               of an image, audio or file part only its own `text`
//   system, instructions, prompt, suffix, input, query, documents
//               every string; a number is a token id and counts 1
//   tools, functions, response_format
//               every string and every key: the model is shown the schema
// Escapes count as the characters they stand for; of a member given twice both count. At most
// kMaxQuantity.
[[nodiscard]] std::expected<std::int64_t, RequestFault> estimate_input_tokens(
    std::string_view body, const TokenEstimateOptions& options = {});

}  // namespace stint::gateway
