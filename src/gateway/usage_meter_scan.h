// Reads the JSON of answers piece by piece for what they used and what text they deliver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace stint::gateway {

// The largest of each number seen.
struct ReportedUsage {
  std::optional<std::int64_t> input{};
  std::optional<std::int64_t> output{};
  std::optional<std::int64_t> total{};
  std::int64_t cached_input = 0;
  std::int64_t reasoning_output = 0;
};

// Takes JSON values one after another: begin, feed as often as there are pieces, end. The pieces
// are not kept, and values may be of any size. What is not valid JSON is counted and otherwise
// passed over.
class AnswerScan {
 public:
  AnswerScan();
  AnswerScan(AnswerScan&&) noexcept;
  AnswerScan& operator=(AnswerScan&&) noexcept;
  ~AnswerScan();

  void begin();
  void feed(std::string_view piece);
  // What follows belongs to another value.
  void end();

  // Of the value under way, or the last one. The chunk of a stream that carries its usage has a
  // `usage` object, no `error`, and an empty `choices`: `[]`, null, or none at all.
  [[nodiscard]] bool may_be_usage_chunk() const noexcept;
  [[nodiscard]] bool is_usage_chunk() const noexcept;
  [[nodiscard]] bool is_whole_object() const noexcept;

  // Of all values.
  [[nodiscard]] const ReportedUsage& reported() const noexcept;
  // A value was a usage chunk.
  [[nodiscard]] bool saw_usage_chunk() const noexcept;
  // Bytes of the text that the model wrote; of values of another shape all bytes.
  [[nodiscard]] std::uint64_t delivered_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::gateway
