// How the store is doing, as /readyz shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stint::gateway {

struct StoreHealth {
  // One server of the store.
  struct Shard {
    std::string name;       // as configured
    bool degraded = false;  // it does not answer: the outage rule decides
    std::string why{};      // of a degraded one, for a person; no address, no secret
  };

  std::string_view backend = "memory";
  std::vector<Shard> shards{};  // none: it is in this process

  [[nodiscard]] bool degraded() const noexcept;
};

// {"backend":"redis","degraded":true,"shards":[{"name":"a","degraded":true,"why":"..."}]}
[[nodiscard]] std::string to_json(const StoreHealth& health);

}  // namespace stint::gateway
