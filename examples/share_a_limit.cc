// Two processes, one limit: start it twice at the same time, with a Redis to count in.
//   share_a_limit redis://127.0.0.1:6379
// Each tries ten times to get one of six admissions a minute; together they get six.
#include <cstdio>
#include <thread>

#include "stint/redis.h"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const std::vector<stint::Policy> policies = {
      {.id = "shared", .limits = {stint::requests_per(60s, 6)}}};
  auto limiter = stint::create_redis_limiter(
      policies, {.url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379", .connect_wait = 2s},
      {.on_warning = [](std::string_view text) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
      }});
  if (!limiter) {
    std::puts(to_string(limiter.error()).c_str());
    return 1;
  }
  for (int i = 1; i <= 10; ++i) {
    auto admission = limiter->admit({});
    if (!admission) return 1;
    std::printf("try %d %s, %lld left\n", i, admission->admitted() ? "admitted" : "refused",
                static_cast<long long>(admission->decision.limits[0].remaining));
    std::this_thread::sleep_for(20ms);
  }
}
