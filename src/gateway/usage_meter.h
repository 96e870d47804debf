// What an answer used, read from its bytes as they pass: one way for plain and streamed answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace stint::gateway {

// The tokens of one answer. All numbers 0 to kMaxQuantity.
struct MeteredUsage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cached_input_tokens = 0;      // a part of input_tokens
  std::int64_t reasoning_output_tokens = 0;  // a part of output_tokens
  // The upstream did not say one of the first two, or the answer broke off before it did.
  bool estimated = false;

  friend bool operator==(const MeteredUsage&, const MeteredUsage&) = default;
};

// Whose words the answer is in. Others will follow.
enum class AnswerFormat : std::uint8_t { openai };

struct UsageMeterOptions {
  AnswerFormat format = AnswerFormat::openai;
  // The estimate of the request's input, taken when the answer does not tell. 0: nothing known.
  std::int64_t input_estimate = 0;
  // False for embeddings: where the answer does not tell its output, it has none.
  bool has_output = true;
  // Takes the chunk with the usage (an empty or missing `choices`, a `usage` object, no `error`)
  // out of an event stream: for a client that did not ask for it. Costs that the start of an event
  // waits while it may still turn out to be that chunk.
  bool hide_usage_chunk = false;
  // With hide_usage_chunk: the most bytes held back. An event that is undecided for longer goes
  // to the client, whatever it is.
  std::size_t max_held_bytes = std::size_t{64} * 1024;
};

// Fed with the body of a successful answer, after any content coding was taken off, in pieces cut
// anywhere. Memory is bounded (about 1 KiB, and what is held back), whatever the size of bodies,
// events and strings: nothing is collected. No input makes it throw.
//
// What an answer reports is merged: of each number the largest one seen counts, so that running
// totals are not added twice, and input tokens may come in the first event and output tokens in
// the last. Numbers that are negative, not whole, above kMaxQuantity or not numbers are as if
// they were absent. From a total alone the missing part follows.
//
// What is missing is estimated: input as `input_estimate`, output as the bytes of text delivered
// so far / 4, rounded up. Text is every string of the choices' messages, deltas and texts that
// the model wrote; of an answer in another shape, or not JSON, all its bytes. An answer that
// broke off counts as the larger of what it reported and what was delivered.
//
// Thread rule: none; a value of one thread.
class UsageMeter {
 public:
  // `content_type`: the field of the answer, with parameters; text/event-stream is a stream,
  // anything else is read as JSON.
  explicit UsageMeter(std::string_view content_type, UsageMeterOptions options = {});
  UsageMeter(UsageMeter&&) noexcept;
  UsageMeter& operator=(UsageMeter&&) noexcept;
  ~UsageMeter();

  // Takes the next bytes of the body; gives the bytes to send on now. They are `bytes` itself
  // unless something is hidden or held back. Valid until the next call and as long as `bytes`.
  // To be sent on unless the body was decoded only to be metered.
  [[nodiscard]] std::string_view feed(std::string_view bytes);

  // The body is complete, or nothing more will come. Gives what was held back and is not hidden;
  // valid as long as the meter. To be called at most once, and feed not afterwards.
  [[nodiscard]] std::string_view finish();

  // As of now; may be asked at any time.
  [[nodiscard]] MeteredUsage usage() const noexcept;

  // Whether the answer was complete by its own account: a stream's `data: [DONE]`; otherwise one
  // whole JSON value.
  [[nodiscard]] bool ended() const noexcept;

  [[nodiscard]] bool is_stream() const noexcept;
  // A stream's: what was sent on so far ends with a whole event, so that another event can
  // follow. Otherwise the client must first see a blank line.
  [[nodiscard]] bool between_events() const noexcept;
  // Bytes given by feed and finish so far.
  [[nodiscard]] std::uint64_t forwarded_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::gateway
