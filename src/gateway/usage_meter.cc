#include "gateway/usage_meter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gateway/token_estimate.h"
#include "gateway/usage_meter_events.h"
#include "gateway/usage_meter_scan.h"
#include "http/message.h"
#include "stint/limit.h"

namespace stint::gateway {
namespace {

bool is_event_stream(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.starts_with(' ') || type.starts_with('\t')) type.remove_prefix(1);
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return http::iequal(type, "text/event-stream");
}

// What a call sends on: one run of the bytes it was given, which costs nothing, or a copy when
// there is something before it or a gap in it.
class Outgoing {
 public:
  void reset() {
    run_ = {};
    copy_.clear();
    // One large piece must not cost its memory for the rest of a long stream.
    if (copy_.capacity() > kUsualPieceBytes) copy_.shrink_to_fit();
    copied_ = false;
  }
  void add_run(std::string_view bytes) {
    if (bytes.empty()) return;
    if (run_.data() != nullptr && run_.data() + run_.size() == bytes.data()) {
      run_ = {run_.data(), run_.size() + bytes.size()};
      return;
    }
    flush();
    run_ = bytes;
  }
  void add_held(std::string& held) {
    flush();
    if (copy_.empty()) {
      std::swap(copy_, held);
    } else {
      copy_ += held;
    }
    held.clear();
    copied_ = true;
  }
  [[nodiscard]] std::string_view get() {
    if (!copied_) return run_;
    flush();
    return copy_;
  }

 private:
  void flush() {
    if (run_.empty()) return;
    copy_ += run_;
    run_ = {};
    copied_ = true;
  }

  static constexpr std::size_t kUsualPieceBytes = 4'096;

  std::string_view run_{};
  std::string copy_{};
  bool copied_ = false;
};

}  // namespace

struct UsageMeter::Impl {
  explicit Impl(std::string_view content_type, UsageMeterOptions given)
      : options(given), stream(is_event_stream(content_type)) {
    if (!stream) scan.begin();
  }

  // What becomes of the block under way.
  enum class Fate : std::uint8_t { open, pass };

  UsageMeterOptions options;
  bool stream;
  AnswerScan scan{};
  EventReader events{};
  Fate fate = Fate::open;
  bool hid_with_cr = false;  // the last block was hidden, and an LF may follow that is its own
  std::string held{};        // the block under way, from earlier pieces, while it is open
  Outgoing outgoing{};
  std::uint64_t forwarded = 0;

  [[nodiscard]] bool ended() const { return stream ? events.saw_done() : scan.is_whole_object(); }

  // Whether the block under way may yet turn out to be the chunk to hide.
  [[nodiscard]] bool undecided() const {
    return options.hide_usage_chunk && fate == Fate::open && !events.in_comment() &&
           (!events.has_data() || scan.may_be_usage_chunk());
  }
  [[nodiscard]] bool to_hide() const {
    return options.hide_usage_chunk && fate == Fate::open && events.has_data() &&
           scan.is_usage_chunk();
  }

  void release(std::string_view part) {
    if (!held.empty()) outgoing.add_held(held);
    outgoing.add_run(part);
  }

  std::string_view feed_stream(std::string_view bytes) {
    outgoing.reset();
    while (!bytes.empty()) {
      const bool rest_of_hidden = hid_with_cr && bytes.front() == '\n';
      hid_with_cr = false;
      const EventReader::Step step = events.read(bytes, scan);
      const std::string_view part = bytes.substr(0, step.taken);
      bytes.remove_prefix(step.taken);
      if (step.ended) {
        if (rest_of_hidden) continue;
        if (to_hide()) {
          held.clear();
          hid_with_cr = events.ends_in_cr();
        } else {
          release(part);
        }
        fate = Fate::open;
      } else if (undecided() && held.size() + part.size() <= options.max_held_bytes) {
        held += part;
      } else {
        release(part);
        fate = Fate::pass;
      }
    }
    return outgoing.get();
  }

  std::string_view finish_stream() {
    outgoing.reset();
    events.finish(scan);
    if (!held.empty() && !to_hide()) {
      outgoing.add_held(held);
      fate = Fate::pass;
    }
    held.clear();
    return outgoing.get();
  }
};

UsageMeter::UsageMeter(std::string_view content_type, UsageMeterOptions options)
    : impl_(std::make_unique<Impl>(content_type, options)) {}
UsageMeter::UsageMeter(UsageMeter&&) noexcept = default;
UsageMeter& UsageMeter::operator=(UsageMeter&&) noexcept = default;
UsageMeter::~UsageMeter() = default;

std::string_view UsageMeter::feed(std::string_view bytes) {
  std::string_view out = bytes;
  if (impl_->stream) {
    out = impl_->feed_stream(bytes);
  } else {
    impl_->scan.feed(bytes);
  }
  impl_->forwarded += out.size();
  return out;
}

std::string_view UsageMeter::finish() {
  std::string_view out;
  if (impl_->stream) {
    out = impl_->finish_stream();
  } else {
    impl_->scan.end();
  }
  impl_->forwarded += out.size();
  return out;
}

MeteredUsage UsageMeter::usage() const noexcept {
  const ReportedUsage& reported = impl_->scan.reported();
  const UsageMeterOptions& options = impl_->options;
  MeteredUsage usage;

  const std::int64_t total = reported.total.value_or(0);
  if (reported.input) {
    usage.input_tokens = *reported.input;
  } else if (reported.total && (reported.output || !options.has_output)) {
    usage.input_tokens = std::max<std::int64_t>(total - reported.output.value_or(0), 0);
  } else {
    usage.input_tokens = std::clamp<std::int64_t>(options.input_estimate, 0, kMaxQuantity);
    if (reported.total) usage.input_tokens = std::min(usage.input_tokens, total);
    usage.estimated = true;
  }

  const std::uint64_t delivered = impl_->scan.delivered_bytes();
  const std::int64_t by_text = std::min(tokens_of_text(delivered), kMaxQuantity);
  bool told = true;
  if (reported.output) {
    usage.output_tokens = *reported.output;
  } else if (reported.total) {
    usage.output_tokens = std::max<std::int64_t>(total - usage.input_tokens, 0);
  } else {
    told = !options.has_output;
  }
  // Running totals of an answer that broke off may be older than its last words.
  const bool final = impl_->scan.saw_usage_chunk() || impl_->ended();
  if (options.has_output && (!told || (!final && by_text > usage.output_tokens))) {
    usage.output_tokens = by_text;
    usage.estimated = true;
  }

  usage.cached_input_tokens = std::min(reported.cached_input, usage.input_tokens);
  usage.reasoning_output_tokens = std::min(reported.reasoning_output, usage.output_tokens);
  return usage;
}

bool UsageMeter::ended() const noexcept { return impl_->ended(); }

bool UsageMeter::is_stream() const noexcept { return impl_->stream; }

bool UsageMeter::between_events() const noexcept {
  return impl_->events.between_blocks() ? impl_->fate == Impl::Fate::open : !impl_->held.empty();
}

std::uint64_t UsageMeter::forwarded_bytes() const noexcept { return impl_->forwarded; }

}  // namespace stint::gateway
