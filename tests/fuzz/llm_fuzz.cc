// Bodies of language models' requests and answers. A request is read as a JSON library reads it,
// and what goes to the upstream is that request with another model and its usage asked for. What an
// answer used, and what of it is passed on, does not depend on how it is cut into pieces.
//
// Inputs read as text, so that seeds can be written by hand; the second byte says where to cut:
//   q_<body>              of a chat     e_<body>  for embeddings
//   a<cut><body>          an answer
//   s<cut><events>        a stream     h<cut>: its usage is hidden
#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/openai_request.h"
#include "gateway/usage_meter.h"
#include "stint/limit.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/require.h"

namespace stint::gateway {
namespace {

namespace json = boost::json;

std::optional<json::object> read_object(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value).as_object();
}

bool is(const json::object& object, std::string_view key, bool expected) {
  const json::value* value = object.if_contains(json::string_view(key.data(), key.size()));
  return value != nullptr && value->is_bool() && value->as_bool() == expected;
}

void check_request(OpenAiEndpoint endpoint, std::string_view body) {
  const auto request = parse_openai_request(endpoint, body);
  if (!request) {
    STINT_REQUIRE(!request.error().message.empty());
    return;
  }
  STINT_REQUIRE(request->input_tokens >= 0 && request->input_tokens <= kMaxQuantity);
  STINT_REQUIRE(request->choices >= 1 && request->choices <= kMaxQuantity);
  if (request->output_cap) {
    STINT_REQUIRE(*request->output_cap >= 0 && *request->output_cap <= kMaxQuantity);
  }

  auto given = read_object(body);
  STINT_REQUIRE(given.has_value());
  STINT_REQUIRE(given->at("model").is_string());
  STINT_REQUIRE(given->at("model").as_string() == json::string_view(request->model));
  if (endpoint != OpenAiEndpoint::embeddings) {
    STINT_REQUIRE(request->stream == is(*given, "stream", true));
  }

  const std::string sent = rewrite_for_upstream(body, *request, "up\"\xC3\xA9");
  auto received = read_object(sent);
  STINT_REQUIRE(received.has_value());
  (*given)["model"] = "up\"\xC3\xA9";
  if (request->stream) {
    json::value& options = (*given)["stream_options"];
    if (!options.is_object()) options.emplace_object();
    options.as_object()["include_usage"] = true;
  }
  STINT_REQUIRE(*received == *given);
}

struct Read {
  std::string passed{};
  MeteredUsage usage{};
  bool ended = false;

  friend bool operator==(const Read&, const Read&) = default;
};

Read read_answer(std::string_view type, std::string_view text, std::size_t cut, bool hide) {
  UsageMeter meter(type, {.input_estimate = 7, .hide_usage_chunk = hide, .max_held_bytes = 256});
  Read read;
  fuzz::in_pieces(text, cut, [&](std::string_view piece) {
    read.passed += meter.feed(piece);
    return true;
  });
  read.passed += meter.finish();
  STINT_REQUIRE(meter.forwarded_bytes() == read.passed.size());
  read.usage = meter.usage();
  read.ended = meter.ended();
  return read;
}

void check_answer(std::string_view type, std::string_view text, std::size_t cut, bool hide) {
  const Read whole = read_answer(type, text, std::max<std::size_t>(text.size(), 1), hide);
  const Read pieces = read_answer(type, text, cut, hide);
  const MeteredUsage& usage = whole.usage;
  for (const std::int64_t tokens : {usage.input_tokens, usage.output_tokens,
                                    usage.cached_input_tokens, usage.reasoning_output_tokens}) {
    STINT_REQUIRE(tokens >= 0 && tokens <= kMaxQuantity);
  }
  if (!hide) {
    STINT_REQUIRE(whole.passed == text);
    STINT_REQUIRE(pieces == whole);
    return;
  }
  // What is held back for too long is passed on, and how long that is the pieces decide.
  STINT_REQUIRE(pieces.usage == whole.usage && pieces.ended == whole.ended);
  if (text.size() <= 256) STINT_REQUIRE(pieces == whole);
}

void check(std::string_view input) {
  if (input.size() < 2) return;
  const std::size_t cut = fuzz::cut_of(input[1]);
  const std::string_view text = input.substr(2);
  switch (input.front()) {
    case 'q':
      return check_request(OpenAiEndpoint::chat_completions, text);
    case 'e':
      return check_request(OpenAiEndpoint::embeddings, text);
    case 'a':
      return check_answer("application/json", text, cut, false);
    case 's':
      return check_answer("text/event-stream", text, cut, false);
    case 'h':
      return check_answer("text/event-stream", text, cut, true);
    default:
      return;
  }
}

}  // namespace
}  // namespace stint::gateway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stint::gateway::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
