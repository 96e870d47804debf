// The limiter: policies and counters, from a request's attributes to a decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stint/attributes.h"
#include "stint/bucket_info.h"
#include "stint/decision.h"
#include "stint/error.h"
#include "stint/policy.h"
#include "stint/time.h"

namespace stint {

namespace admission {
class LimiterCore;
struct Booking;
struct MakeLimiter;
}  // namespace admission

// What a request is going to use. All numbers 0 to kMaxQuantity.
struct Cost {
  // Charged to limits of Unit::requests. 0: the request is not counted, and is refused only where
  // more than the quota is used already.
  std::int64_t requests = 1;
  // The estimate of the tokens of the input. A caller that knows only a total puts it here and
  // sets output_cap to 0.
  std::int64_t input_tokens = 0;
  // The most tokens that the answer may have. Absent: unknown; kDefaultOutputTokens is assumed.
  std::optional<std::int64_t> output_cap{};
  // Takes a slot of concurrency limits until the reservation is settled. False for a caller that
  // cannot say when the request ends: concurrency limits are skipped.
  bool holds_slot = true;
};

// What is assumed of an answer of which nothing is known: neither its cap nor earlier answers.
inline constexpr std::int64_t kDefaultOutputTokens = 256;

// The tokens that a request really used, 0 to kMaxQuantity each.
struct Usage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

// What an admission handed out: charges to be settled exactly once, and the slots of concurrency
// limits, held until then. Move-only; moved into whatever outlives the handler, such as a
// stream. Destroying one that is not settled releases it.
//
// Settling, for each kind of limit:
//             requests     tokens                          slot
//   commit    stay         the real use replaces the       freed
//                          charge: a refund goes to the
//                          window that was charged, an
//                          overspend to the current one
//   release   stay         given back                      freed
//   cancel    given back   given back                      freed
//
// A settled, moved-from or default-constructed reservation is empty: settling it again returns
// already_settled and changes nothing.
// Thread rule: one thread at a time; any thread. The Limiter must outlive it.
class [[nodiscard]] Reservation {
 public:
  using Done = std::move_only_function<void(Result<void>)>;

  Reservation() noexcept;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;  // releases what it held
  ~Reservation();

  // True until settled: charges or slots are held.
  [[nodiscard]] bool holds() const noexcept { return booking_ != nullptr; }

  // The request ran and used this many tokens. invalid_argument (a negative count) changes
  // nothing, and the reservation stays open. `unavailable`: the outcome is unknown, what was
  // charged stands, and the reservation is settled.
  Result<void> commit(Usage usage = {});
  // The request ended without using tokens.
  Result<void> release();
  // The request is to count as never made.
  Result<void> cancel();

  // As above without waiting: `done` is called exactly once, on the caller's thread before the
  // call returns or later on a thread of the store.
  void commit(Usage usage, Done done);
  void release(Done done);
  void cancel(Done done);

 private:
  friend class admission::LimiterCore;
  explicit Reservation(std::unique_ptr<admission::Booking> booking) noexcept;

  std::unique_ptr<admission::Booking> booking_;
};

struct Admission {
  Decision decision;
  Reservation reservation;  // empty unless admitted

  [[nodiscard]] bool admitted() const noexcept { return decision.admitted(); }
};

struct LimiterOptions {
  // The most buckets kept in memory. At the cap spent buckets go first, then those with most
  // left; a bucket that is at its limit, in debt or in use never goes. When none can go, new
  // keys of a policy share one bucket. 1 or more; about 100 bytes each and the key.
  std::size_t max_buckets = 1'000'000;
  // How long the slot of a reservation lives without being renewed. 3 s to 1 h. The limiter
  // renews before it looks at a slot; with counters in memory nobody has to call anything.
  Duration concurrency_ttl = std::chrono::seconds{30};
  // Null: system_clock(). Must outlive the limiter.
  const Clock* clock = nullptr;
  // Told about what an operator should know, at most once a minute for each kind: a wall clock
  // that was set back, policies whose new keys share a bucket. Called on any thread, inside
  // calls of the limiter: must be quick and must not call it. Empty: nobody is told.
  std::function<void(std::string_view)> on_warning{};
};

// Counts since the limiter was made; sizes are as of now. Not one consistent snapshot.
struct LimiterStats {
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t undecided = 0;
  std::uint64_t shadow_refused = 0;       // admissions that a shadow policy would have refused
  std::uint64_t skipped_concurrency = 0;  // concurrency limits skipped for want of a slot holder
  std::size_t buckets = 0;
  std::size_t overflow_buckets = 0;  // of them: shared by new keys of a policy at the cap
  std::uint64_t overflowed = 0;      // charges that went to a shared bucket
  std::uint64_t expired = 0;         // spent buckets freed
  std::uint64_t evicted = 0;         // buckets freed at the cap although not spent
  std::size_t held = 0;              // reservations that hold a slot
};

// A limiter with its counters in this process.
//
// Thread rule: all functions may be called from any thread at any time, except that nothing may
// run during destruction. It must outlive its reservations. No call throws (but std::bad_alloc),
// and none waits for anything but short critical sections.
//
// The calls that ask the store come in two forms. One returns the answer, and waits for it where
// the counters are not in this process. The other never waits: `done` is called exactly once, on
// the caller's thread before the call returns (as counters in this process always do) or later on
// a thread of the store, where it must be quick and must not throw. Arguments passed by reference
// or view need to live only until the call returns; the limiter, until `done` was called.
class Limiter {
 public:
  // Errors: invalid_argument; the field names an option or a policy's part.
  [[nodiscard]] static Result<Limiter> create(const std::vector<Policy>& policies,
                                              LimiterOptions options = {});

  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  // Decides over all buckets of the request at once: charges every one or none. Undecided is an
  // outcome, not an error. Errors: invalid_argument ("cost.requests", ...), nothing is charged.
  [[nodiscard]] Result<Admission> admit(const Attributes& attributes, const Cost& cost = {});
  void admit(const Attributes& attributes, const Cost& cost,
             std::move_only_function<void(Result<Admission>)> done);

  // What `admit` would say now; charges nothing and creates nothing.
  [[nodiscard]] Result<Decision> peek(const Attributes& attributes, const Cost& cost = {});
  void peek(const Attributes& attributes, const Cost& cost,
            std::move_only_function<void(Result<Decision>)> done);

  // Puts other policies into force for admissions from now on. Counters stay where a policy's
  // id, its group_by and the limit's unit, window and algorithm are the same; others start anew.
  // Running reservations settle by the policies that admitted them. On error the old ones stay.
  [[nodiscard]] Result<void> set_policies(const std::vector<Policy>& policies);

  // Forgets the buckets whose full key matches the pattern (`*` any text, `?` one byte), and
  // says how many. Held reservations stay valid; what they give back is dropped.
  ResetSummary reset(std::string_view pattern);
  void reset(std::string_view pattern, std::move_only_function<void(ResetSummary)> done);

  // Buckets whose full key matches, at most `page_size` (1 to 1,000) of them; `cursor` 0 starts.
  // A bucket that is there during the whole listing is in it; work per call is bounded, so a
  // page may be short or empty before the last. See BucketPage::unreached.
  [[nodiscard]] Result<BucketPage> list(std::string_view pattern, std::uint64_t cursor = 0,
                                        std::size_t page_size = 100) const;
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
            std::move_only_function<void(Result<BucketPage>)> done) const;

  [[nodiscard]] LimiterStats stats() const;

 private:
  friend struct admission::MakeLimiter;
  explicit Limiter(std::shared_ptr<admission::LimiterCore> core) noexcept;

  std::shared_ptr<admission::LimiterCore> core_;
};

}  // namespace stint
