#include "gateway/usage_meter_scan.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>

#include "gateway/token_estimate.h"
#include "stint/limit.h"

namespace stint::gateway {
namespace {

namespace json = boost::json;

// What a value is, by where in the answer it stands.
enum class Zone : std::uint8_t {
  ignored,
  root,
  choices,         // the array
  choice,          // one of them
  message,         // a message or delta, and what it holds: strings are text but those of kNoText
  text,            // a string of text
  audio,           // of a message: only its transcript is text
  usage,           // the object with the counts
  input_details,   // inside usage
  output_details,  // inside usage
};

constexpr bool one_of(std::string_view name, auto... names) { return ((name == names) || ...); }

std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

// Follows the parser through one answer or event; the names of its functions are Boost.JSON's.
class Reader {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  // Of one value.
  enum class Choices : std::uint8_t { absent, empty, other };
  struct Value {
    Choices choices = Choices::absent;
    bool usage_object = false;
    bool usage_other = false;
    bool error = false;  // it has one, which the client is to see
    bool known_shape = false;
    bool whole = false;
    std::uint64_t text_bytes = 0;
  };
  [[nodiscard]] const Value& value() const { return value_; }
  [[nodiscard]] const ReportedUsage& reported() const { return reported_; }
  void begin() {
    value_ = Value{};
    depth_ = 0;
    key_size_ = 0;
    key_complete_ = true;
  }

  bool on_document_begin(json::error_code& /*ec*/) { return true; }
  bool on_document_end(json::error_code& /*ec*/) { return true; }

  bool on_object_begin(json::error_code& ec) {
    if (depth_ == 0) {
      frames_[depth_++] = Frame{Zone::root, false};
      return true;
    }
    if (!begin_value(ec)) return false;
    if (depth_ == 1) {
      if (zone_ == Zone::usage) value_.usage_object = true;
      if (zone_ == Zone::choices) value_.choices = Choices::other;
      note_error();
    }
    frames_[depth_++] = Frame{zone_, false};
    return true;
  }
  bool on_object_end(std::size_t /*n*/, json::error_code& /*ec*/) {
    if (--depth_ == 0) value_.whole = true;
    return true;
  }
  bool on_array_begin(json::error_code& ec) {
    if (!begin_value(ec)) return false;
    if (depth_ == 1 && zone_ == Zone::choices && value_.choices == Choices::absent) {
      value_.choices = Choices::empty;
    } else {
      not_an_object_or_array();
    }
    frames_[depth_++] = Frame{zone_, true};
    return true;
  }
  bool on_array_end(std::size_t /*n*/, json::error_code& /*ec*/) {
    --depth_;
    return true;
  }

  bool on_key_part(json::string_view piece, std::size_t /*n*/, json::error_code& /*ec*/) {
    add_to_key(view(piece));
    return true;
  }
  bool on_key(json::string_view piece, std::size_t /*n*/, json::error_code& /*ec*/) {
    add_to_key(view(piece));
    key_complete_ = true;
    return true;
  }

  bool on_string_part(json::string_view piece, std::size_t /*n*/, json::error_code& ec) {
    if (!begin_scalar(ec)) return false;
    if (is_text()) value_.text_bytes += piece.size();
    return true;
  }
  bool on_string(json::string_view piece, std::size_t n, json::error_code& ec) {
    return on_string_part(piece, n, ec);
  }

  bool on_number_part(json::string_view /*piece*/, json::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t number, json::string_view /*s*/, json::error_code& ec) {
    if (!begin_scalar(ec)) return false;
    if (number >= 0 && number <= kMaxQuantity) report(number);
    return true;
  }
  bool on_uint64(std::uint64_t /*u*/, json::string_view /*s*/, json::error_code& ec) {
    return begin_scalar(ec);
  }
  bool on_double(double /*d*/, json::string_view /*s*/, json::error_code& ec) {
    return begin_scalar(ec);
  }
  bool on_bool(bool /*b*/, json::error_code& ec) { return begin_scalar(ec); }
  bool on_null(json::error_code& ec) {
    if (!begin_value(ec)) return false;
    if (depth_ == 1 && zone_ == Zone::choices && value_.choices == Choices::absent) {
      value_.choices = Choices::empty;
    } else if (depth_ != 1 || key() != "error") {
      not_an_object_or_array();
    }
    return true;
  }
  bool on_comment_part(json::string_view /*s*/, json::error_code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*s*/, json::error_code& /*ec*/) { return true; }

 private:
  struct Frame {
    Zone zone;
    bool array;
  };

  [[nodiscard]] std::string_view key() const {
    return key_size_ <= key_.size() ? std::string_view(key_.data(), key_size_) : std::string_view();
  }

  void add_to_key(std::string_view piece) {
    if (key_complete_) key_size_ = 0;
    key_complete_ = false;
    if (key_size_ + piece.size() > key_.size()) {  // longer than any that matters
      key_size_ = key_.size() + 1;
      return;
    }
    std::ranges::copy(piece, key_.begin() + static_cast<std::ptrdiff_t>(key_size_));
    key_size_ += piece.size();
  }

  // Sets zone_ to that of the value that begins, and notes what its presence says.
  bool begin_value(json::error_code& ec) {
    if (depth_ == 0) {
      ec = json::error::syntax;
      return false;
    }
    const Frame& parent = frames_[depth_ - 1];
    zone_ = parent.array ? zone_of_element(parent.zone) : zone_of_member(parent.zone);
    if (depth_ == 1 && one_of(key(), "choices", "usage", "error")) value_.known_shape = true;
    return true;
  }

  Zone zone_of_element(Zone parent) {
    if (parent != Zone::choices) return parent;
    value_.choices = Choices::other;
    return Zone::choice;
  }

  [[nodiscard]] Zone zone_of_member(Zone parent) const {
    switch (parent) {
      case Zone::root:
        if (key() == "choices") return Zone::choices;
        return key() == "usage" ? Zone::usage : Zone::ignored;
      case Zone::choice:
        if (one_of(key(), "message", "delta")) return Zone::message;
        return key() == "text" ? Zone::text : Zone::ignored;
      case Zone::message:
        if (one_of(key(), "role", "id", "type", "annotations")) return Zone::ignored;
        return key() == "audio" ? Zone::audio : Zone::message;
      case Zone::audio:
        return key() == "transcript" ? Zone::text : Zone::ignored;
      case Zone::usage:
        if (one_of(key(), "prompt_tokens_details", "input_tokens_details")) {
          return Zone::input_details;
        }
        if (one_of(key(), "completion_tokens_details", "output_tokens_details")) {
          return Zone::output_details;
        }
        return Zone::usage;
      case Zone::choices:
      case Zone::text:
      case Zone::input_details:
      case Zone::output_details:
      case Zone::ignored:
        return Zone::ignored;
    }
    return Zone::ignored;
  }

  bool begin_scalar(json::error_code& ec) {
    if (!begin_value(ec)) return false;
    not_an_object_or_array();
    return true;
  }

  // The value that begins is not what the usage chunk has there.
  void not_an_object_or_array() {
    if (depth_ != 1) return;
    if (zone_ == Zone::choices) value_.choices = Choices::other;
    if (zone_ == Zone::usage) value_.usage_other = true;
    note_error();
  }
  void note_error() {
    if (key() == "error") value_.error = true;
  }

  [[nodiscard]] bool is_text() const { return zone_ == Zone::message || zone_ == Zone::text; }

  // A number directly inside usage or its details.
  void report(std::int64_t number) {
    const Frame& parent = frames_[depth_ - 1];
    if (parent.array) return;
    const auto raise = [number](std::optional<std::int64_t>& largest) {
      largest = std::max(largest.value_or(0), number);
    };
    if (parent.zone == Zone::usage && depth_ == 2) {
      if (one_of(key(), "prompt_tokens", "input_tokens")) raise(reported_.input);
      if (one_of(key(), "completion_tokens", "output_tokens")) raise(reported_.output);
      if (key() == "total_tokens") raise(reported_.total);
    } else if (parent.zone == Zone::input_details && key() == "cached_tokens") {
      reported_.cached_input = std::max(reported_.cached_input, number);
    } else if (parent.zone == Zone::output_details && key() == "reasoning_tokens") {
      reported_.reasoning_output = std::max(reported_.reasoning_output, number);
    }
  }

  std::array<Frame, kMaxJsonDepth + 1> frames_{};
  std::size_t depth_ = 0;
  Zone zone_ = Zone::ignored;
  std::array<char, 32> key_{};
  std::size_t key_size_ = 0;
  bool key_complete_ = true;
  Value value_{};
  ReportedUsage reported_{};
};

json::parse_options options() {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return options;
}

}  // namespace

struct AnswerScan::Impl {
  json::basic_parser<Reader> parser{options()};
  std::uint64_t value_bytes = 0;       // of the value under way
  bool failed = false;                 // it is no JSON object
  bool started = false;                // more than white space came
  bool open = false;                   // between begin and end
  std::uint64_t delivered_before = 0;  // by earlier values
  bool saw_usage_chunk = false;

  [[nodiscard]] const Reader::Value& value() const { return parser.handler().value(); }

  // An unfinished value says nothing of its shape yet, unless it is none.
  [[nodiscard]] std::uint64_t delivered_by_value() const {
    const bool other_shape = failed || (value().whole && !value().known_shape);
    return other_shape ? value_bytes : value().text_bytes;
  }
};

AnswerScan::AnswerScan() : impl_(std::make_unique<Impl>()) {}
AnswerScan::AnswerScan(AnswerScan&&) noexcept = default;
AnswerScan& AnswerScan::operator=(AnswerScan&&) noexcept = default;
AnswerScan::~AnswerScan() = default;

void AnswerScan::begin() {
  impl_->parser.reset();
  impl_->parser.handler().begin();
  impl_->value_bytes = 0;
  impl_->failed = false;
  impl_->started = false;
  impl_->open = true;
}

void AnswerScan::feed(std::string_view piece) {
  impl_->value_bytes += piece.size();
  if (impl_->failed) return;
  if (!impl_->started) {
    piece.remove_prefix(std::min(piece.find_first_not_of(" \t\r\n"), piece.size()));
    if (piece.empty()) return;
    impl_->started = true;
    // Told from the first byte: a number has no end before the next value.
    impl_->failed = piece.front() != '{';
    if (impl_->failed) return;
  }
  json::error_code error;
  const std::size_t taken = impl_->parser.write_some(true, piece.data(), piece.size(), error);
  impl_->failed = error || taken < piece.size();
}

void AnswerScan::end() {
  if (!impl_->open) return;
  impl_->saw_usage_chunk = impl_->saw_usage_chunk || is_usage_chunk();
  impl_->delivered_before += impl_->delivered_by_value();
  impl_->open = false;
}

bool AnswerScan::may_be_usage_chunk() const noexcept {
  const Reader::Value& value = impl_->value();
  return !impl_->failed && value.choices != Reader::Choices::other && !value.usage_other &&
         !value.error;
}

bool AnswerScan::is_usage_chunk() const noexcept {
  const Reader::Value& value = impl_->value();
  return may_be_usage_chunk() && value.whole && value.usage_object;
}

bool AnswerScan::is_whole_object() const noexcept { return !impl_->failed && impl_->value().whole; }

const ReportedUsage& AnswerScan::reported() const noexcept {
  return impl_->parser.handler().reported();
}

bool AnswerScan::saw_usage_chunk() const noexcept { return impl_->saw_usage_chunk; }

std::uint64_t AnswerScan::delivered_bytes() const noexcept {
  return impl_->delivered_before + (impl_->open ? impl_->delivered_by_value() : 0);
}

}  // namespace stint::gateway
