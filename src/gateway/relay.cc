#include "gateway/relay.h"

#include <algorithm>
#include <utility>

namespace stint::gateway {
namespace {

// The most text that a compressed answer is followed for.
constexpr std::uint64_t kMaxDecoded = 256 * 1024 * 1024;

// How much of it is read before other requests of the loop have their turn: a few milliseconds.
constexpr std::size_t kDecodedAtOnce = 256 * 1024;

bool is_event_stream(const http::Fields& fields) {
  constexpr std::string_view kStream = "text/event-stream";
  const auto type = fields.get("content-type");
  return type && http::iequal(type->substr(0, kStream.size()), kStream);
}

}  // namespace

void charge(Dispatcher::Request& request, const MeteredUsage& usage) {
  request.usage = usage;
  request.permit.commit({.input_tokens = usage.input_tokens, .output_tokens = usage.output_tokens});
  if (request.model == nullptr) return;
  const ModelMetrics& metrics = request.serving->metrics_of(*request.model);
  const auto add = [](const observe::Counter& counter, std::int64_t tokens) {
    counter.add(static_cast<std::uint64_t>(tokens));
  };
  add(metrics.input_tokens, usage.input_tokens);
  add(metrics.output_tokens, usage.output_tokens);
  add(metrics.cached_tokens, usage.cached_input_tokens);
  add(metrics.reasoning_tokens, usage.reasoning_output_tokens);
  if (usage.estimated) metrics.unmetered.add();
}

Relay::Relay(Dispatcher::Request& request, const std::optional<UsageMeterOptions>& meter,
             const http::ResponseHead& head)
    : request_(request), stream_(is_event_stream(head.fields)) {
  if (!meter || head.status < 200 || head.status > 299) return;
  UsageMeterOptions options = *meter;
  const auto coding = http::parse_content_coding(head.fields.get("content-encoding"));
  // A coding that nobody here can read: metered by the bytes, as an answer of another shape.
  if (coding && *coding != http::ContentCoding::identity) {
    decoder_ = http::ContentDecoder::create(*coding, kMaxDecoded);
  }
  if (!coding || decoder_) options.hide_usage_chunk = false;
  hides_ = stream_ && options.hide_usage_chunk;
  meter_.emplace(head.fields.get("content-type").value_or("application/json"), options);
}

std::string_view Relay::take(std::string_view bytes) {
  if (!meter_) return bytes;
  if (!decoder_) return meter_->feed(bytes);
  undecoded_ = bytes;
  behind_ = true;
  catch_up();
  return bytes;
}

void Relay::catch_up() {
  std::size_t decoded = 0;
  while (behind_ && decoded < kDecodedAtOnce) {
    const auto text = decoder_->next(undecoded_);
    behind_ = text && !text->empty();  // after an error: metered by what came before it
    if (!behind_) return;
    decoded += text->size();
    (void)meter_->feed(*text);
  }
}

std::string_view Relay::rest() {
  if (!meter_) return {};
  const std::string_view rest = meter_->finish();
  return decoder_ ? std::string_view{} : rest;
}

std::size_t Relay::before_end(std::string_view bytes) const noexcept {
  if (decoder_) return 0;  // where an event begins cannot be seen
  if (!stream_) return bytes.empty() ? 0 : bytes.size() - 1;
  const std::size_t last = bytes.find_last_not_of("\r\n");
  const std::string_view whole = bytes.substr(0, last == std::string_view::npos ? 0 : last);
  std::size_t begin = 0;
  for (const std::string_view blank_line : {"\n\n", "\n\r\n", "\r\r"}) {
    const std::size_t found = whole.rfind(blank_line);
    if (found != std::string_view::npos) begin = std::max(begin, found + blank_line.size());
  }
  return begin;
}

void Relay::settle() {
  if (settled_) return;
  settled_ = true;
  if (!meter_) return request_.permit.commit({});
  charge(request_, meter_->usage());
}

}  // namespace stint::gateway
