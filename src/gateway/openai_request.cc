#include "gateway/openai_request.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <span>
#include <vector>

#include "gateway/openai_request_scan.h"
#include "stint/limit.h"

namespace stint::gateway {
namespace {

std::unexpected<RequestFault> fault(std::string_view param, std::string_view text) {
  return std::unexpected(
      RequestFault{"`" + std::string(param) + "` " + std::string(text), std::string(param)});
}

// A body as its members; a member that is null is as if it were absent.
class Body {
 public:
  Body(std::string_view text, std::vector<JsonMember> members)
      : text_(text), members_(std::move(members)) {}

  [[nodiscard]] const JsonMember* find(std::string_view key) const {
    const auto found = std::ranges::find(members_, key, &JsonMember::key);
    return found == members_.end() ? nullptr : &*found;
  }

  // The text of its value; empty if absent.
  [[nodiscard]] std::string_view value(std::string_view key) const {
    const JsonMember* member = find(key);
    if (member == nullptr) return {};
    const std::string_view text = text_.substr(member->value.begin, size_of(member->value));
    return text == "null" ? std::string_view() : text;
  }

  [[nodiscard]] std::size_t end_of_last() const { return members_.back().value.end; }
  [[nodiscard]] bool empty() const { return members_.empty(); }

  static std::size_t size_of(TextSpan span) { return span.end - span.begin; }

 private:
  std::string_view text_;
  std::vector<JsonMember> members_;
};

std::expected<bool, RequestFault> flag(const Body& body, std::string_view key,
                                       std::string_view path) {
  const std::string_view value = body.value(key);
  if (value.empty() || value == "false") return false;
  if (value == "true") return true;
  return fault(path, "must be true or false.");
}

// Read from the text, not from a parsed number: 1e3 and 10.0 are no whole numbers, and no size is
// too large to be told from them.
std::expected<std::optional<std::int64_t>, RequestFault> whole_number(const Body& body,
                                                                      std::string_view key) {
  const std::string_view value = body.value(key);
  if (value.empty()) return std::nullopt;
  if (!std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) {
    return fault(key, "must be a whole number of at least 0, without a fraction or exponent.");
  }
  std::int64_t number = kMaxQuantity;  // stays where the text is out of range
  std::from_chars(value.data(), value.data() + value.size(), number);
  return std::min(number, kMaxQuantity);
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMaxQuantity : std::min(product, kMaxQuantity);
}

std::expected<void, RequestFault> read_model(const Body& body, std::string_view text,
                                             OpenAiRequest& request) {
  const JsonMember* model = body.find("model");
  if (model == nullptr) {
    return fault("model", "is missing. Name one of the models of GET /v1/models.");
  }
  request.model_value = model->value;
  const std::string_view value = text.substr(model->value.begin, Body::size_of(model->value));
  if (value.front() == '"') request.model = decode_json_string(value);
  if (request.model.empty()) {
    return fault("model", "must be text: the name of one of the models of GET /v1/models.");
  }
  return {};
}

std::expected<void, RequestFault> read_output_cap(const Body& body, OpenAiRequest& request) {
  for (const std::string_view key : {"max_completion_tokens", "max_tokens"}) {
    const auto cap = whole_number(body, key);
    if (!cap) return std::unexpected(cap.error());
    if (*cap) request.output_cap = std::max(**cap, request.output_cap.value_or(0));
  }
  for (const std::string_view key : {"n", "best_of"}) {
    const auto choices = whole_number(body, key);
    if (!choices) return std::unexpected(choices.error());
    request.choices = std::max(request.choices, choices->value_or(1));
  }
  if (request.output_cap) request.output_cap = multiply(*request.output_cap, request.choices);
  return {};
}

// Finds out what was asked for, and where to edit so that usage is.
std::expected<void, RequestFault> read_stream(const Body& body, std::string_view text,
                                              OpenAiRequest& request) {
  const auto stream = flag(body, "stream", "stream");
  if (!stream) return std::unexpected(stream.error());
  request.stream = *stream;

  const JsonMember* options = body.find("stream_options");
  if (body.value("stream_options").empty()) {
    if (!request.stream) return {};
    if (options != nullptr) {  // null
      request.usage_edit = options->value;
      request.usage_text = R"({"include_usage":true})";
    } else {
      request.usage_edit = {body.end_of_last(), body.end_of_last()};
      request.usage_text = R"(,"stream_options":{"include_usage":true})";
    }
    return {};
  }

  if (text[options->value.begin] != '{') return fault("stream_options", "must be an object.");
  auto members = scan_members(text, options->value.begin, "stream_options.");
  if (!members) return std::unexpected(std::move(members.error()));
  const Body inside(text, std::move(*members));
  const auto usage = flag(inside, "include_usage", "stream_options.include_usage");
  if (!usage) return std::unexpected(usage.error());
  request.include_usage = *usage;
  if (!request.stream || *usage) return {};

  if (const JsonMember* given = inside.find("include_usage")) {  // false or null
    request.usage_edit = given->value;
    request.usage_text = "true";
  } else if (inside.empty()) {
    request.usage_edit = {options->value.begin + 1, options->value.begin + 1};
    request.usage_text = R"("include_usage":true)";
  } else {
    request.usage_edit = {inside.end_of_last(), inside.end_of_last()};
    request.usage_text = R"(,"include_usage":true)";
  }
  return {};
}

}  // namespace

std::expected<OpenAiRequest, RequestFault> parse_openai_request(
    OpenAiEndpoint endpoint, std::string_view body, const TokenEstimateOptions& options) {
  const auto input_tokens = estimate_input_tokens(body, options);
  if (!input_tokens) return std::unexpected(input_tokens.error());
  auto members = scan_members(body);
  if (!members) return std::unexpected(std::move(members.error()));
  const Body read(body, std::move(*members));

  OpenAiRequest request;
  request.input_tokens = *input_tokens;
  if (auto done = read_model(read, body, request); !done) return std::unexpected(done.error());
  if (endpoint == OpenAiEndpoint::embeddings) {
    request.output_cap = 0;
    return request;
  }
  if (auto done = read_output_cap(read, request); !done) return std::unexpected(done.error());
  if (auto done = read_stream(read, body, request); !done) return std::unexpected(done.error());
  return request;
}

std::string rewrite_for_upstream(std::string_view body, const OpenAiRequest& request,
                                 std::string_view upstream_model) {
  struct Edit {
    TextSpan span;
    std::string_view text;
  };
  const std::string model = boost::json::serialize(
      boost::json::string_view(upstream_model.data(), upstream_model.size()));
  std::array<Edit, 2> edits{Edit{request.model_value, model},
                            Edit{request.usage_edit, request.usage_text}};
  // A model of the same name keeps its spelling.
  if (request.model == upstream_model) {
    const TextSpan span = request.model_value;
    edits[0].text = body.substr(span.begin, span.end - span.begin);
  }
  // Edits that start at the same place: what is inserted after the model's value comes second.
  if (edits[1].span.begin < edits[0].span.begin) std::swap(edits[0], edits[1]);

  std::string out;
  out.reserve(body.size() + model.size() + request.usage_text.size());
  std::size_t copied = 0;
  for (const Edit& edit : edits) {
    if (edit.text.empty()) continue;
    out += body.substr(copied, edit.span.begin - copied);
    out += edit.text;
    copied = edit.span.end;
  }
  out += body.substr(copied);
  return out;
}

}  // namespace stint::gateway
