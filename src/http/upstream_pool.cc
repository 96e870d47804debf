#include "http/upstream_pool.h"

#include <iterator>

namespace stint::http {

std::optional<net::Stream> UpstreamPool::take(const std::string& origin) {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return std::nullopt;
  std::list<Kept>& kept = found->second;
  std::optional<net::Stream> taken;
  while (!taken && !kept.empty()) {
    kept.back().stream.stop_watching();
    // The event loop may not have come to tell the watch. Bytes are no better than an end: they
    // would be taken for the answer to the next request.
    if (!kept.back().stream.readable()) taken = std::move(kept.back().stream);
    kept.pop_back();
    --size_;
  }
  if (kept.empty()) origins_.erase(found);
  return taken;
}

void UpstreamPool::keep(const std::string& origin, net::Stream stream) {
  if (!stream.open()) return;
  OfOrigin& of_origin = *origins_.try_emplace(origin).first;
  std::list<Kept>& all = of_origin.second;
  Kept& kept = all.emplace_back(*this, of_origin, std::move(stream));
  kept.self = std::prev(all.end());
  ++size_;
  kept.expiry.arm(loop_.now() + idle_timeout_);
  // An end and bytes that nobody asked for come to the same: it is of no use any more.
  kept.stream.watch([this, &kept](bool) { drop(kept); });
  if (all.size() > per_origin_) drop(all.front());
}

void UpstreamPool::drop(Kept& kept) noexcept {
  OfOrigin& of_origin = kept.origin;
  of_origin.second.erase(kept.self);
  --size_;
  if (of_origin.second.empty()) origins_.erase(origins_.find(of_origin.first));
}

void UpstreamPool::clear() noexcept {
  origins_.clear();
  size_ = 0;
}

}  // namespace stint::http
