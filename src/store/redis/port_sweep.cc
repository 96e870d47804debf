// Listing and resetting over all servers.
#include <utility>

#include "store/redis/port.h"
#include "store/redis/sweep.h"

namespace stint::store {
namespace {

// Of one command, which nobody's request waits for.
constexpr Duration kSweepTimeout = std::chrono::seconds{2};

// A cursor of the store: 8 bits of target, 8 of SweepCursor::skip, 48 of SweepCursor::scan.
constexpr std::uint64_t kScanBits = (std::uint64_t{1} << 48) - 1;

SweepCursor sweep_cursor(std::uint64_t cursor) {
  return {cursor & kScanBits, static_cast<std::uint8_t>(cursor >> 48 & 0xFF)};
}

std::uint64_t store_cursor(std::size_t target, std::size_t targets, const SweptPage& page) {
  if (page.more) {
    return std::uint64_t{target} << 56 | std::uint64_t{page.next.skip} << 48 |
           (page.next.scan & kScanBits);
  }
  return target + 1 < targets ? std::uint64_t{target + 1} << 56 : 0;
}

ReachOf reach_in(const std::shared_ptr<Servers>& servers) {
  return [servers](std::string_view key) { return servers->topology().route(key).reach; };
}

// The page says what it does not have, and the next one is made by what the answer has taught.
template <class Page>
void tell_moved(redis::Topology& topology, const redis::Target& of, const SweptPage& swept,
                Page& page) {
  if (!swept.moved) return;
  (void)topology.redirected(swept.moved->key, of, swept.moved->error);
  page.unreached.push_back({std::string(of.name()), "buckets move: " + swept.moved->error.text});
}

}  // namespace

void Port::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                BucketPage& page, Done done) {
  page = {};
  const auto targets = servers_->topology().targets();
  const std::size_t target = cursor >> 56;
  if (target >= targets.size()) return done();
  redis::Target& of = *targets[target];
  SweepRequest request{shared_.keys_begin, std::string(pattern),        sweep_cursor(cursor),
                       page_size,          loop_.now() + kSweepTimeout, reach_in(servers_)};
  sweep(of, shared_.scripts, std::move(request),
        [this, target, count = targets.size(), &of, &page, servers = servers_,
         done = std::move(done)](SweptPage swept) mutable {
          tell_moved(servers->topology(), of, swept, page);
          if (!swept.error.empty()) {
            shared_.warn("list", "a listing of Redis failed: " + swept.error);
            page.unreached.push_back({std::string(of.name()), std::move(swept.error)});
          }
          for (SweptBucket& bucket : swept.buckets) page.buckets.push_back(std::move(bucket.info));
          page.next = store_cursor(target, count, swept);
          done();
        });
}

void Port::reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) {
  constexpr std::size_t kAtOnce = 256;
  page = {};
  const auto targets = servers_->topology().targets();
  const std::size_t target = cursor >> 56;
  if (target >= targets.size()) return done();
  redis::Target& of = *targets[target];
  SweepRequest request{shared_.keys_begin,          std::string(pattern),
                       sweep_cursor(cursor),        kAtOnce,
                       loop_.now() + kSweepTimeout, reach_in(servers_)};
  sweep(of, shared_.scripts, std::move(request),
        [this, target, count = targets.size(), &of, &page, servers = servers_,
         reach_of = reach_in(servers_), done = std::move(done)](SweptPage swept) mutable {
          tell_moved(servers->topology(), of, swept, page);
          page.next = store_cursor(target, count, swept);
          const auto failed = [this, &of, &page, target, count](std::string why) {
            shared_.warn("reset", "a reset in Redis failed: " + why);
            page.unreached.push_back({std::string(of.name()), std::move(why)});
            page.next = store_cursor(target, count, {});  // the others are gone on with
          };
          if (!swept.error.empty()) failed(std::move(swept.error));
          remove_buckets(of, shared_.keys_begin, swept.buckets, reach_of,
                         loop_.now() + kSweepTimeout,
                         [failed, &page, done = std::move(done)](std::size_t removed,
                                                                 std::string error) mutable {
                           page.removed = removed;
                           if (!error.empty()) failed(std::move(error));
                           done();
                         });
        });
}

}  // namespace stint::store
