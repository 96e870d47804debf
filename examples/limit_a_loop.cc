// Limits a loop to three rounds a second and ten in all a minute, and waits as it is told.
#include <cstdio>
#include <thread>

#include "stint/limiter.h"

int main() {
  using namespace std::chrono_literals;
  const stint::Policy policy{.id = "rounds",
                             .group_by = {"member"},
                             .limits = {stint::requests_per(1s, 3), stint::requests_per(60s, 10)}};
  auto limiter = stint::Limiter::create({policy});
  if (!limiter) {
    std::puts(to_string(limiter.error()).c_str());
    return 1;
  }
  stint::Attributes attributes;
  attributes.set(stint::Dimension::member, "alice");
  for (int round = 1; round <= 8; ++round) {
    auto admission = limiter->admit(attributes);
    if (admission && !admission->admitted()) {
      const stint::Duration wait = admission->decision.retry_after().value_or(0us);
      std::printf(
          "round %d refused, waiting %lld ms\n", round,
          static_cast<long long>(std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
      std::this_thread::sleep_for(wait);
      admission = limiter->admit(attributes);
    }
    if (!admission || !admission->admitted()) return 1;
    std::printf("round %d admitted, %lld left this minute\n", round,
                static_cast<long long>(admission->decision.limits[1].remaining));
  }
}
