#include "stint/limiter.h"

#include <utility>

#include "admission/booking.h"
#include "admission/limiter_core.h"
#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint {

using admission::LimiterCore;
using admission::Settlement;

Reservation::Reservation() noexcept = default;
Reservation::Reservation(std::unique_ptr<admission::Booking> booking) noexcept
    : booking_(std::move(booking)) {}
Reservation::Reservation(Reservation&& other) noexcept = default;

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (holds()) release([](const Result<void>&) {});
  booking_ = std::move(other.booking_);
  return *this;
}

Reservation::~Reservation() {
  if (holds()) release([](const Result<void>&) {});
}

Result<void> Reservation::commit(Usage usage) {
  return LimiterCore::settle(booking_, Settlement::commit, usage);
}
Result<void> Reservation::release() {
  return LimiterCore::settle(booking_, Settlement::release, {});
}
Result<void> Reservation::cancel() { return LimiterCore::settle(booking_, Settlement::cancel, {}); }

void Reservation::commit(Usage usage, Done done) {
  LimiterCore::settle(booking_, Settlement::commit, usage, std::move(done));
}
void Reservation::release(Done done) {
  LimiterCore::settle(booking_, Settlement::release, {}, std::move(done));
}
void Reservation::cancel(Done done) {
  LimiterCore::settle(booking_, Settlement::cancel, {}, std::move(done));
}

Result<Limiter> Limiter::create(const std::vector<Policy>& policies, LimiterOptions options) {
  if (options.max_buckets < 1) return invalid("max_buckets", "must be at least 1");
  if (options.concurrency_ttl < std::chrono::seconds{3} ||
      options.concurrency_ttl > std::chrono::hours{1}) {
    return invalid("concurrency_ttl", "must be between 3 s and 1 h");
  }
  auto table = policy::Table::create(policies);
  if (!table) return std::unexpected(std::move(table.error()));
  const Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  base::Entropy& entropy = base::system_entropy();
  auto store = std::make_shared<store::MemoryStore>(
      store::MemoryStoreOptions{.max_buckets = options.max_buckets,
                                .hash_seed = entropy.next(),
                                .on_warning = options.on_warning},
      std::make_unique<store::ForwardClock>(clock, options.on_warning));
  return Limiter(std::make_shared<LimiterCore>(std::move(store), std::move(*table), clock,
                                               options.concurrency_ttl, entropy));
}

Limiter::Limiter(std::shared_ptr<LimiterCore> core) noexcept : core_(std::move(core)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Admission> Limiter::admit(const Attributes& attributes, const Cost& cost) {
  return core_->admit(attributes, cost);
}
Result<Decision> Limiter::peek(const Attributes& attributes, const Cost& cost) {
  return core_->peek(attributes, cost);
}
void Limiter::admit(const Attributes& attributes, const Cost& cost,
                    std::move_only_function<void(Result<Admission>)> done) {
  core_->admit(attributes, cost, std::move(done));
}
void Limiter::peek(const Attributes& attributes, const Cost& cost,
                   std::move_only_function<void(Result<Decision>)> done) {
  core_->peek(attributes, cost, std::move(done));
}
Result<void> Limiter::set_policies(const std::vector<Policy>& policies) {
  return core_->set_policies(policies);
}
ResetSummary Limiter::reset(std::string_view pattern) { return core_->reset(pattern); }
Result<BucketPage> Limiter::list(std::string_view pattern, std::uint64_t cursor,
                                 std::size_t page_size) const {
  return core_->list(pattern, cursor, page_size);
}
void Limiter::reset(std::string_view pattern, std::move_only_function<void(ResetSummary)> done) {
  core_->reset(pattern, std::move(done));
}
void Limiter::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                   std::move_only_function<void(Result<BucketPage>)> done) const {
  core_->list(pattern, cursor, page_size, std::move(done));
}
LimiterStats Limiter::stats() const { return core_->stats(); }

}  // namespace stint
