// Requests in OpenAI's format: what the gateway must know of one, and the text for the upstream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/token_estimate.h"

namespace stint::gateway {

enum class OpenAiEndpoint : std::uint8_t {
  chat_completions,  // POST /v1/chat/completions
  completions,       // POST /v1/completions
  embeddings,        // POST /v1/embeddings
};

// A part of a body, by position, so that the body's string may move.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct OpenAiRequest {
  std::string model{};  // never empty
  bool stream = false;  // embeddings: always false
  // What the client asked for with stream_options.include_usage. If it did not, the usage of a
  // stream is still forced by `rewrite_for_upstream` and to be hidden from the client.
  bool include_usage = false;
  // The most tokens that all answers together may have: the larger one of max_completion_tokens
  // and max_tokens, times `choices`. Absent if the request names no cap. Embeddings: 0.
  std::optional<std::int64_t> output_cap{};
  // max(1, n, best_of): what a cap of the model is to be multiplied by.
  std::int64_t choices = 1;
  std::int64_t input_tokens = 0;  // estimate_input_tokens

  // Where `rewrite_for_upstream` edits: the value of `model`, and for a stream without usage
  // what is put in place of (an empty span: at) `usage_edit`.
  TextSpan model_value{};
  TextSpan usage_edit{};
  std::string_view usage_text{};  // static text; empty: nothing to edit
};

// The largest number of members of the body's object: more are refused.
inline constexpr std::size_t kMaxTopLevelMembers = 256;

// Reads a body. A fault is for a 400: not one JSON object in UTF-8, nested too deeply, a member
// given twice at the top level or in stream_options (two readers might take different ones), a
// missing or ill-typed model, stream or stream_options, a cap, n or best_of that is not a whole
// number of at least 0. null is as if the member were absent (but for model). Numbers above
// kMaxQuantity count as that. Everything else is the upstream's to judge.
[[nodiscard]] std::expected<OpenAiRequest, RequestFault> parse_openai_request(
    OpenAiEndpoint endpoint, std::string_view body, const TokenEstimateOptions& options = {});

// The body for the upstream: the value of the top-level `model` becomes `upstream_model`, and for
// a stream stream_options.include_usage becomes true. Every other byte stays as it is.
// `request` is what parse_openai_request made of the same `body`.
[[nodiscard]] std::string rewrite_for_upstream(std::string_view body, const OpenAiRequest& request,
                                               std::string_view upstream_model);

}  // namespace stint::gateway
