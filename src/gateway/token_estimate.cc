#include "gateway/token_estimate.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>

#include "base/utf8.h"
#include "stint/limit.h"

namespace stint::gateway {
namespace {

namespace json = boost::json;

// What a value is, by where in the body it stands.
enum class Zone : std::uint8_t {
  ignored,
  root,
  text,        // every string is text, every number a token id
  schema,      // strings and keys are text
  messages,    // the array of messages
  message,     // a message, and what it holds: strings are text but those of kNoText
  media,       // a message's own audio
  content,     // its content: text, or an array of parts
  part,        // one part of it
  part_text,   // a part's own text
  part_type,   // a part's type
  part_media,  // what makes a part one of media: not text
  part_other,  // text unless the part turns out to be media
};

constexpr bool one_of(std::string_view name, auto... names) { return ((name == names) || ...); }

Zone zone_of_member(std::string_view name) {
  if (name == "messages") return Zone::messages;
  if (one_of(name, "system", "instructions", "prompt", "suffix", "input", "query", "documents")) {
    return Zone::text;
  }
  if (one_of(name, "tools", "functions", "response_format")) return Zone::schema;
  return Zone::ignored;
}

// Members of messages and parts that only structure them.
bool is_no_text(std::string_view name) {
  return one_of(name, "role", "type", "id", "tool_call_id", "detail");
}

bool is_media_type(std::string_view type) {
  return std::ranges::any_of(std::array<std::string_view, 4>{"image", "audio", "video", "file"},
                             [&](std::string_view word) { return type.contains(word); });
}

Zone zone_of_part_member(std::string_view name) {
  if (name == "text") return Zone::part_text;
  if (name == "type") return Zone::part_type;
  if (one_of(name, "image_url", "image", "input_audio", "audio", "video_url", "file")) {
    return Zone::part_media;
  }
  return is_no_text(name) ? Zone::ignored : Zone::part_other;
}

// Short text put together from the pieces that the parser gives; of longer text only that it is.
class Word {
 public:
  void add(std::string_view piece) {
    if (complete_) size_ = 0;
    complete_ = false;
    const std::size_t room = std::min(piece.size(), text_.size() - std::min(size_, text_.size()));
    std::copy_n(piece.begin(), room, text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ = room == piece.size() ? size_ + room : kTooLong;
  }
  void end(std::string_view piece) {
    add(piece);
    complete_ = true;
  }
  [[nodiscard]] std::string_view get() const {
    return size_ <= text_.size() ? std::string_view(text_.data(), size_) : std::string_view();
  }

 private:
  static constexpr std::size_t kTooLong = 1'000;
  std::array<char, 32> text_{};
  std::size_t size_ = 0;
  bool complete_ = true;
};

// Follows the parser through the body; the names of its functions are Boost.JSON's.
class Estimator {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }
  [[nodiscard]] std::uint64_t token_ids() const { return token_ids_; }
  [[nodiscard]] std::uint64_t media_parts() const { return media_parts_; }
  [[nodiscard]] bool not_an_object() const { return not_an_object_; }

  bool on_document_begin(json::error_code& /*ec*/) { return true; }
  bool on_document_end(json::error_code& /*ec*/) { return true; }

  bool on_object_begin(json::error_code& ec) {
    if (depth_ == 0) {
      frames_[depth_++] = Frame{Zone::root, false};
      return true;
    }
    return open(false, ec);
  }
  bool on_object_end(std::size_t /*n*/, json::error_code& /*ec*/) {
    if (frames_[--depth_].zone == Zone::part) end_part();
    return true;
  }
  bool on_array_begin(json::error_code& ec) { return open(true, ec); }
  bool on_array_end(std::size_t /*n*/, json::error_code& /*ec*/) {
    --depth_;
    return true;
  }

  bool on_key_part(json::string_view piece, std::size_t /*n*/, json::error_code& /*ec*/) {
    key_.add({piece.data(), piece.size()});
    return true;
  }
  bool on_key(json::string_view piece, std::size_t n, json::error_code& /*ec*/) {
    key_.end({piece.data(), piece.size()});
    if (frames_[depth_ - 1].zone == Zone::schema) text_bytes_ += n;
    return true;
  }

  bool on_string_part(json::string_view piece, std::size_t /*n*/, json::error_code& /*ec*/) {
    string_.add({piece.data(), piece.size()});
    return true;
  }
  bool on_string(json::string_view piece, std::size_t n, json::error_code& ec) {
    string_.end({piece.data(), piece.size()});
    if (!begin_value(ec)) return false;
    switch (zone_) {
      case Zone::text:
      case Zone::schema:
      case Zone::messages:
      case Zone::message:
      case Zone::content:
      case Zone::part_text:
        text_bytes_ += n;
        break;
      case Zone::part_other:
        part_bytes_ += n;
        break;
      case Zone::part_type:
        part_is_media_ = part_is_media_ || is_media_type(string_.get());
        break;
      default:
        break;
    }
    return true;
  }

  bool on_number_part(json::string_view /*piece*/, json::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t /*i*/, json::string_view /*s*/, json::error_code& ec) {
    return on_number(ec);
  }
  bool on_uint64(std::uint64_t /*u*/, json::string_view /*s*/, json::error_code& ec) {
    return on_number(ec);
  }
  bool on_double(double /*d*/, json::string_view /*s*/, json::error_code& ec) {
    return on_number(ec);
  }
  bool on_bool(bool /*b*/, json::error_code& ec) { return begin_value(ec); }
  bool on_null(json::error_code& ec) { return begin_value(ec); }
  bool on_comment_part(json::string_view /*s*/, json::error_code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*s*/, json::error_code& /*ec*/) { return true; }

 private:
  struct Frame {
    Zone zone;
    bool array;
  };

  // Sets zone_ to that of the value that begins.
  bool begin_value(json::error_code& ec) {
    if (depth_ == 0) {
      not_an_object_ = true;
      ec = json::error::syntax;
      return false;
    }
    const Frame& parent = frames_[depth_ - 1];
    const std::string_view key = parent.array ? std::string_view() : key_.get();
    zone_ = parent.zone;
    switch (parent.zone) {
      case Zone::root:
        zone_ = zone_of_member(key);
        break;
      case Zone::messages:
        zone_ = Zone::message;
        break;
      case Zone::message:
        if (parent.array) break;
        if (is_no_text(key)) zone_ = Zone::ignored;
        // Only a message itself has content of parts; deeper down all is text.
        if (depth_ == kDepthInMessage && key == "content") zone_ = Zone::content;
        if (depth_ == kDepthInMessage && key == "audio") zone_ = Zone::media;
        break;
      case Zone::part:
        zone_ = zone_of_part_member(key);
        if (zone_ == Zone::part_media) part_is_media_ = true;
        break;
      case Zone::part_other:
        if (!parent.array && is_no_text(key)) zone_ = Zone::ignored;
        break;
      default:
        break;
    }
    return true;
  }

  bool open(bool array, json::error_code& ec) {
    if (!begin_value(ec)) return false;
    Zone zone = zone_;
    if (zone == Zone::media) {
      ++media_parts_;
      zone = Zone::ignored;
    }
    if (zone == Zone::content && !array && frames_[depth_ - 1].array) {
      zone = Zone::part;
      part_bytes_ = 0;
      part_is_media_ = false;
    }
    frames_[depth_++] = Frame{zone, array};
    return true;
  }

  void end_part() {
    if (part_is_media_) {
      ++media_parts_;
    } else {
      text_bytes_ += part_bytes_;
    }
  }

  bool on_number(json::error_code& ec) {
    if (!begin_value(ec)) return false;
    if (zone_ == Zone::text) ++token_ids_;
    return true;
  }

  // Inside an element of the top-level `messages`: body, array, message.
  static constexpr std::size_t kDepthInMessage = 3;

  std::array<Frame, kMaxJsonDepth + 1> frames_{};
  std::size_t depth_ = 0;
  Zone zone_ = Zone::ignored;
  Word key_;
  Word string_;
  std::uint64_t text_bytes_ = 0;
  std::uint64_t token_ids_ = 0;
  std::uint64_t media_parts_ = 0;
  std::uint64_t part_bytes_ = 0;
  bool part_is_media_ = false;
  bool not_an_object_ = false;
};

std::string describe(std::string_view body, const json::error_code& error, bool not_an_object) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return "The body is empty. Send one JSON object.";
  }
  if (not_an_object) return "The body is not a JSON object. Send one JSON object.";
  if (!base::is_utf8(body)) return "The body is not valid UTF-8. Encode the JSON in UTF-8.";
  if (error == json::error::too_deep) {
    return "The body nests arrays and objects more than " + std::to_string(kMaxJsonDepth) +
           " deep. Send a flatter one.";
  }
  return "The body is not valid JSON (" + error.message() + "). Send one JSON object.";
}

__extension__ using Wide = unsigned __int128;

}  // namespace

std::expected<std::int64_t, RequestFault> estimate_input_tokens(
    std::string_view body, const TokenEstimateOptions& options) {
  json::parse_options how;
  how.max_depth = kMaxJsonDepth;
  json::basic_parser<Estimator> parser(how);
  json::error_code error;
  const std::size_t taken = parser.write_some(false, body.data(), body.size(), error);
  if (!error && taken < body.size()) error = json::error::extra_data;
  const Estimator& seen = parser.handler();
  if (error) return std::unexpected(RequestFault{describe(body, error, seen.not_an_object())});

  const std::int64_t each = std::max<std::int64_t>(options.tokens_per_media_part, 0);
  const Wide sum = Wide{seen.media_parts()} * static_cast<std::uint64_t>(each) + seen.token_ids() +
                   static_cast<std::uint64_t>(tokens_of_text(seen.text_bytes()));
  return static_cast<std::int64_t>(std::min(sum, Wide{std::uint64_t{kMaxQuantity}}));
}

}  // namespace stint::gateway
