#include "stint/decision.h"

#include <algorithm>
#include <tuple>

#include "limit/tightness.h"

namespace stint::limit {

bool tighter(const LimitStatus& a, const LimitStatus& b) noexcept {
  // Compared crosswise in 128 bits; of a limit of 0 nothing (0 / 1) is left.
  __extension__ using Wide = __int128;
  const Wide left = Wide{a.remaining} * std::max<std::int64_t>(b.limit.capacity(), 1);
  const Wide right = Wide{b.remaining} * std::max<std::int64_t>(a.limit.capacity(), 1);
  if (left != right) return left < right;
  return std::tuple(a.limit.window, b.policy_id) > std::tuple(b.limit.window, a.policy_id);
}

}  // namespace stint::limit

namespace stint {
namespace {

// Orders the limits that refused: the one to report comes out greatest. Two limits that tie in
// all of it say the same to the client; the id makes the choice the same in any order.
auto weight_of_refusal(const LimitStatus& status) {
  return std::tuple(status.verdict == Verdict::never_fits, status.wait, status.limit.window,
                    -status.limit.quota, status.policy_id, status.limit.unit);
}

bool refuses(const LimitStatus& status) noexcept {
  return !status.shadow &&
         (status.verdict == Verdict::refused || status.verdict == Verdict::never_fits);
}

}  // namespace

const LimitStatus* Decision::refused_by() const noexcept {
  if (outcome != Outcome::refused) return nullptr;
  const LimitStatus* reported = nullptr;
  for (const LimitStatus& status : limits) {
    if (!refuses(status)) continue;
    if (reported == nullptr || weight_of_refusal(status) > weight_of_refusal(*reported)) {
      reported = &status;
    }
  }
  return reported;
}

std::optional<Duration> Decision::retry_after() const noexcept {
  const LimitStatus* reported = refused_by();
  if (reported == nullptr || reported->verdict == Verdict::never_fits) return std::nullopt;
  return reported->wait;
}

const LimitStatus* Decision::tightest() const noexcept {
  const LimitStatus* tightest = nullptr;
  for (const LimitStatus& status : limits) {
    if (status.shadow || status.verdict == Verdict::skipped) continue;
    if (tightest == nullptr || limit::tighter(status, *tightest)) tightest = &status;
  }
  return tightest;
}

}  // namespace stint
