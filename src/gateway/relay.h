// One answer of an upstream on its way to the client: metered, and settled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "gateway/request.h"
#include "gateway/usage_meter.h"
#include "http/content_coding.h"
#include "http/message.h"

namespace stint::gateway {

// Commits what a request used, and counts it in the metrics of its model.
void charge(Dispatcher::Request& request, const MeteredUsage& usage);

// Thread rule: the loop's thread. Both arguments of the constructor must outlive it.
class Relay {
 public:
  // `meter`: how a successful answer is metered; absent: tokens are not counted. Answers that are
  // no success used no tokens.
  Relay(Dispatcher::Request& request, const std::optional<UsageMeterOptions>& meter,
        const http::ResponseHead& head);

  // The bytes to send on for these. Valid until the next call and as long as `bytes`. They are
  // metered then, unless it is `behind`.
  [[nodiscard]] std::string_view take(std::string_view bytes);
  // A little that is compressed may stand for a lot: the rest of it is to be metered by `catch_up`,
  // a bounded part at a time, before anything else is done with this relay.
  [[nodiscard]] bool behind() const noexcept { return behind_; }
  void catch_up();
  // After the last: what was held back.
  [[nodiscard]] std::string_view rest();

  // The answer is complete by its own account: what follows adds no tokens.
  [[nodiscard]] bool ended() const { return meter_ && meter_->ended(); }
  [[nodiscard]] bool stream() const noexcept { return stream_; }
  // Fewer bytes may be sent on than came.
  [[nodiscard]] bool hides() const noexcept { return hides_; }
  [[nodiscard]] bool between_events() const { return !meter_ || meter_->between_events(); }

  // Of the bytes that end the answer, how many may go on before it is settled: all but the last
  // event of a stream, all but the last byte of anything else.
  [[nodiscard]] std::size_t before_end(std::string_view bytes) const noexcept;

  // Charges what was used so far; to be called before the last byte goes to the client, and on
  // every other way out. Only the first call counts. The store may not have it yet: see
  // Request::unsettled.
  void settle();

 private:
  Dispatcher::Request& request_;
  bool stream_ = false;
  bool hides_ = false;
  bool settled_ = false;
  bool behind_ = false;
  std::string_view undecoded_{};  // of the bytes that were taken last
  std::optional<UsageMeter> meter_;
  std::unique_ptr<http::ContentDecoder> decoder_;  // the client gets the bytes as they are
};

}  // namespace stint::gateway
