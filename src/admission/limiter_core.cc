#include "admission/limiter_core.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "admission/ask.h"
#include "admission/wait.h"

namespace stint::admission {
namespace {

Result<void> check_quantity(const char* field, std::int64_t value) {
  if (value < 0) return invalid(field, "must not be negative");
  if (value > kMaxQuantity) {
    return invalid(field, "must be at most " + std::to_string(kMaxQuantity) + " (2^53 - 1)");
  }
  return {};
}

Result<void> check(const Cost& cost) {
  if (auto ok = check_quantity("cost.requests", cost.requests); !ok) return ok;
  if (auto ok = check_quantity("cost.input_tokens", cost.input_tokens); !ok) return ok;
  return check_quantity("cost.output_cap", cost.output_cap.value_or(0));
}

Result<void> check(const Usage& usage) {
  if (auto ok = check_quantity("usage.input_tokens", usage.input_tokens); !ok) return ok;
  return check_quantity("usage.output_tokens", usage.output_tokens);
}

bool expects_output(const policy::CompiledPolicy& policy) {
  return std::ranges::any_of(policy.limits->specs(), [](const limit::Spec& spec) {
    return spec.name.unit == Unit::tokens || spec.name.unit == Unit::output_tokens;
  });
}

// No policy applies: there is nothing to ask the store, and nothing to settle with it.
bool asks_nothing(const Booking& booking) noexcept { return booking.record.buckets.empty(); }

bool names_charges(const limit::Spec& spec) noexcept {
  return spec.name.algorithm == Algorithm::concurrency ||
         spec.name.algorithm == Algorithm::sliding_log;
}

void add(ResetSummary& all, store::ResetPage& page) {
  all.removed += page.removed;
  std::ranges::move(page.unreached, std::back_inserter(all.unreached));
}

// A reset over all its pages. Whether a page is answered before its call returns or later, the
// next one is asked for from the same depth of the stack.
class ResetPages {
 public:
  ResetPages(std::shared_ptr<store::RateStore> store, std::string pattern, Cleared done)
      : store_(std::move(store)), pattern_(std::move(pattern)), done_(std::move(done)) {}

  static void go_on(std::shared_ptr<ResetPages> self) {
    do {
      self->page_ = {};
      self->halves_.store(0, std::memory_order_relaxed);
      self->store_->reset(self->pattern_, self->cursor_, self->page_, [self] {
        if (self->second_half() && !self->add_page()) go_on(self);
      });
      if (!self->second_half()) return;  // the answer goes on when it comes
    } while (!self->add_page());
  }

 private:
  // The return of the call and its answer: true for the one that comes second.
  [[nodiscard]] bool second_half() noexcept {
    return halves_.fetch_add(1, std::memory_order_acq_rel) == 1;
  }

  // True if it was the last.
  bool add_page() {
    add(summary_, page_);
    cursor_ = page_.next;
    if (cursor_ != 0) return false;
    done_(std::move(summary_));
    return true;
  }

  const std::shared_ptr<store::RateStore> store_;
  const std::string pattern_;
  Cleared done_;
  store::ResetPage page_;
  std::uint64_t cursor_ = 0;
  ResetSummary summary_;
  std::atomic<int> halves_{0};
};

}  // namespace

LimiterCore::LimiterCore(std::shared_ptr<store::RateStore> store,
                         std::shared_ptr<const policy::Table> table, const Clock& clock,
                         Duration ttl, base::Entropy& entropy)
    : store_(std::move(store)),
      ttl_(ttl),
      ids_(entropy),
      learned_(entropy.next()),
      keeper_(*store_, clock, ttl),
      table_(std::move(table)) {}

Result<Admission> LimiterCore::admit(const Attributes& attributes, const Cost& cost) {
  auto booking = prepare(attributes, cost);
  if (!booking) return std::unexpected(std::move(booking.error()));
  if (asks_nothing(**booking)) return finish(std::move(*booking));
  Waiter waiter;
  store_->acquire((*booking)->record, [&waiter] { waiter.done(); });
  waiter.wait();
  return finish(std::move(*booking));
}

void LimiterCore::admit(const Attributes& attributes, const Cost& cost, Admitted done,
                        const std::atomic<bool>* cancelled) {
  auto booking = prepare(attributes, cost);
  if (!booking) return done(std::unexpected(std::move(booking.error())));
  if (asks_nothing(**booking)) return done(finish(std::move(*booking)));
  store::AdmissionRecord& record = (*booking)->record;
  record.cancelled = cancelled;
  (*booking)->admitted = std::move(done);
  store_->acquire(record, [booking = std::move(*booking)]() mutable {
    booking->record.cancelled = nullptr;
    Admitted answer = std::move(booking->admitted);
    LimiterCore& core = *booking->core;
    answer(core.finish(std::move(booking)));
  });
}

Result<Decision> LimiterCore::peek(const Attributes& attributes, const Cost& cost) {
  auto booking = prepare(attributes, cost);
  if (!booking) return std::unexpected(std::move(booking.error()));
  if (asks_nothing(**booking)) return make_decision(**booking);
  Waiter waiter;
  store_->peek((*booking)->record, [&waiter] { waiter.done(); });
  waiter.wait();
  return make_decision(**booking);
}

void LimiterCore::peek(const Attributes& attributes, const Cost& cost, Peeked done) {
  auto booking = prepare(attributes, cost);
  if (!booking) return done(std::unexpected(std::move(booking.error())));
  if (asks_nothing(**booking)) return done(make_decision(**booking));
  store::AdmissionRecord& record = (*booking)->record;
  (*booking)->peeked = std::move(done);
  store_->peek(record,
               [booking = std::move(*booking)] { booking->peeked(make_decision(*booking)); });
}

Result<std::unique_ptr<Booking>> LimiterCore::prepare(const Attributes& attributes,
                                                      const Cost& cost) {
  if (auto ok = check(cost); !ok) return std::unexpected(std::move(ok.error()));
  auto booking = std::make_unique<Booking>();
  booking->core = this;
  booking->table = table_.get();
  booking->policies = booking->table->match(attributes);
  booking->record.lease_ttl = ttl_;
  add_buckets(*booking, attributes, cost);
  if (asks_nothing(*booking)) booking->record.outcome = Outcome::admitted;
  // Whoever asks for a slot asks a store in which every running request has its own.
  if (booking->wants_slot) keeper_.renew_due();
  return booking;
}

void LimiterCore::add_buckets(Booking& booking, const Attributes& attributes, const Cost& cost) {
  store::AdmissionRecord& record = booking.record;
  std::optional<std::int64_t> mean;
  if (std::ranges::any_of(booking.policies, expects_output,
                          [](const auto* p) -> const auto& { return *p; })) {
    booking.teaches = true;
    booking.caller =
        learned_.caller(attributes.get(Dimension::api_key), attributes.get(Dimension::model));
    mean = learned_.mean(booking.caller);
  }
  boost::container::small_vector<limit::KeySpan, 8> keys;
  booking.text.reserve(64 * booking.policies.size());
  for (const policy::CompiledPolicy* policy : booking.policies) {
    keys.push_back(policy->write_key(booking.text, attributes));
    record.buckets.push_back({.key = {},
                              .text = {},
                              .policy = policy->escaped_id,
                              .limits = policy->limits,
                              .first_slot = record.slots.size(),
                              .shadow = policy->mode == Mode::shadow,
                              .on_store_error = policy->on_store_error});
    for (const limit::Spec& spec : policy->limits->specs()) {
      record.slots.push_back(ask(spec, policy->token_admission, cost, mean));
      const bool takes = !record.slots.back().skip;
      booking.wants_slot = booking.wants_slot || (takes && spec.name.unit == Unit::concurrency);
      if (takes && names_charges(spec) && record.id == base::Id{}) record.id = ids_.next();
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {  // now that the text lies still
    const std::string_view text = booking.text;
    record.buckets[i].key = text.substr(keys[i].key_begin, keys[i].key_size);
    record.buckets[i].text = text.substr(keys[i].text_begin, keys[i].text_size);
  }
}

Admission LimiterCore::finish(std::unique_ptr<Booking> booking) {
  count(*booking);
  Admission admission{make_decision(*booking), {}};
  if (!admission.admitted()) return admission;
  if (booking->wants_slot) keeper_.add(*booking);
  admission.reservation = Reservation(std::move(booking));
  return admission;
}

void LimiterCore::count(const Booking& booking) noexcept {
  switch (booking.record.outcome) {
    case Outcome::admitted:
      counts_.add(kAdmitted);
      break;
    case Outcome::refused:
      counts_.add(kRefused);
      break;
    case Outcome::undecided:
      counts_.add(kUndecided);
      return;
  }
  std::uint64_t skipped = 0;
  bool shadow_refused = false;
  for (const store::BucketSlot& bucket : booking.record.buckets) {
    for (const store::LimitSlot& slot : booking.record.slots_of(bucket)) {
      if (slot.verdict == Verdict::skipped) ++skipped;
      if (slot.verdict == Verdict::refused || slot.verdict == Verdict::never_fits) {
        shadow_refused = shadow_refused || bucket.shadow;
      }
    }
  }
  if (skipped > 0) counts_.add(kSkipped, skipped);
  if (shadow_refused) counts_.add(kShadowRefused);
}

Result<void> LimiterCore::set_policies(const std::vector<Policy>& policies) {
  auto table = policy::Table::create(policies);
  if (!table) return std::unexpected(std::move(table.error()));
  table_.set(std::move(*table));
  return {};
}

ResetSummary LimiterCore::reset(std::string_view pattern) {
  ResetSummary summary;
  std::uint64_t cursor = 0;
  do {
    store::ResetPage page;
    Waiter waiter;
    store_->reset(pattern, cursor, page, [&waiter] { waiter.done(); });
    waiter.wait();
    add(summary, page);
    cursor = page.next;
  } while (cursor != 0);
  return summary;
}

Result<BucketPage> LimiterCore::list(std::string_view pattern, std::uint64_t cursor,
                                     std::size_t page_size) {
  if (page_size < 1 || page_size > 1000) return invalid("page_size", "must be 1 to 1000");
  keeper_.renew_due();  // so that leases of running requests are listed
  BucketPage page;
  Waiter waiter;
  store_->list(pattern, cursor, page_size, page, [&waiter] { waiter.done(); });
  waiter.wait();
  return page;
}

void LimiterCore::reset(std::string_view pattern, Cleared done) {
  auto pages = std::make_shared<ResetPages>(store_, std::string(pattern), std::move(done));
  ResetPages::go_on(std::move(pages));
}

void LimiterCore::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                       Listed done) {
  if (page_size < 1 || page_size > 1000) return done(invalid("page_size", "must be 1 to 1000"));
  keeper_.renew_due();
  struct Listing {
    std::string pattern;
    Listed done;
    BucketPage page{};
  };
  auto listing = std::make_unique<Listing>(std::string(pattern), std::move(done));
  Listing& held = *listing;
  store_->list(held.pattern, cursor, page_size, held.page,
               [listing = std::move(listing)] { listing->done(std::move(listing->page)); });
}

LimiterStats LimiterCore::stats() const {
  const store::StoreStats store = store_->stats();
  return {.admitted = counts_.sum(kAdmitted),
          .refused = counts_.sum(kRefused),
          .undecided = counts_.sum(kUndecided),
          .shadow_refused = counts_.sum(kShadowRefused),
          .skipped_concurrency = counts_.sum(kSkipped),
          .buckets = store.buckets,
          .overflow_buckets = store.overflow_buckets,
          .overflowed = store.overflowed,
          .expired = store.expired,
          .evicted = store.evicted,
          .held = keeper_.held()};
}

Result<void> LimiterCore::settle(std::unique_ptr<Booking>& booking, Settlement how,
                                 const Usage& usage) {
  Waiter waiter;
  Result<void> result;
  settle(booking, how, usage, [&](Result<void> settled) {
    result = std::move(settled);
    waiter.done();
  });
  waiter.wait();
  return result;
}

void LimiterCore::settle(std::unique_ptr<Booking>& booking, Settlement how, const Usage& usage,
                         Settled done) {
  if (!booking) {
    return done(std::unexpected(
        Error{ErrorCode::already_settled, "", "the reservation was settled before"}));
  }
  if (auto ok = check(usage); !ok) return done(std::move(ok));
  LimiterCore& core = *booking->core;
  write_actuals(*booking, how, usage);
  if (how == Settlement::commit && booking->teaches && usage.output_tokens > 0) {
    core.learned_.learn(booking->caller, usage.output_tokens);
  }
  if (asks_nothing(*booking)) {
    booking.reset();
    return done({});
  }
  booking->settled = std::move(done);
  if (!booking->wants_slot) return send_settlement(std::move(booking));
  Booking& held = *booking;
  std::move_only_function<void()> then = [booking = std::move(booking)]() mutable {
    send_settlement(std::move(booking));
  };
  if (core.keeper_.withdraw(held, then)) then();
}

void LimiterCore::send_settlement(std::unique_ptr<Booking> booking) {
  store::AdmissionRecord& record = booking->record;
  store::RateStore& store = *booking->core->store_;
  store.settle(record, [booking = std::move(booking)](Result<void> result) mutable {
    Settled done = std::move(booking->settled);
    booking.reset();
    done(std::move(result));
  });
}

}  // namespace stint::admission
