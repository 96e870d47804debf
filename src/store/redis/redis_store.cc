#include "store/redis/redis_store.h"

#include <atomic>
#include <utility>

#include "store/redis/port.h"
#include "store/redis/shared.h"

namespace stint::store {

class RedisStore::Impl {
 public:
  Impl(RedisStoreOptions options, const Clock& clock, base::Entropy& entropy)
      : shared(std::move(options), clock, entropy) {}

  // Calls `work` with the port of this thread's loop, or with one of the ports on its own thread.
  template <class Work>
  void on_port(Work work) {
    for (const auto& port : ports) {
      if (port->loop().executor().running_in_this_thread()) return work(*port);
    }
    Port& port = *ports[next.fetch_add(1, std::memory_order_relaxed) % ports.size()];
    port.loop().post([&port, work = std::move(work)]() mutable { work(port); });
  }

  [[nodiscard]] Port& port_of(const net::EventLoop& loop) {
    for (const auto& port : ports) {
      if (&port->loop() == &loop) return *port;
    }
    std::unreachable();
  }

  Shared shared;
  std::vector<std::unique_ptr<Port>> ports;
  std::atomic<std::size_t> next{0};
};

RedisStore::RedisStore(RedisStoreOptions options, const Clock& clock, base::Entropy& entropy)
    : impl_(std::make_unique<Impl>(std::move(options), clock, entropy)) {}

RedisStore::~RedisStore() = default;

void RedisStore::add_loop(net::EventLoop& loop, const MakeTopology& make) {
  impl_->ports.push_back(std::make_unique<Port>(loop, impl_->shared, make));
}

void RedisStore::replace(MakeTopology make, Duration timeout) {
  for (const auto& port : impl_->ports) {
    port->loop().post([&port = *port, make, timeout] { port.replace(make, timeout); });
  }
}

void RedisStore::start(net::EventLoop& loop) { impl_->port_of(loop).start(); }

net::Task<void> RedisStore::stop(net::EventLoop& loop) {
  Port& port = impl_->port_of(loop);
  co_await port.stop();
}

void RedisStore::acquire(AdmissionRecord& record, Done done) {
  impl_->on_port([&record, done = std::move(done)](Port& port) mutable {
    port.ask(record, false, std::move(done));
  });
}

void RedisStore::peek(AdmissionRecord& record, Done done) {
  impl_->on_port([&record, done = std::move(done)](Port& port) mutable {
    port.ask(record, true, std::move(done));
  });
}

void RedisStore::settle(AdmissionRecord& record, Settled done) {
  impl_->on_port([&record, done = std::move(done)](Port& port) mutable {
    port.settle(record, std::move(done));
  });
}

void RedisStore::renew(std::span<AdmissionRecord* const> records, Done done) {
  impl_->on_port([records, done = std::move(done)](Port& port) mutable {
    port.renew(records, std::move(done));
  });
}

void RedisStore::reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) {
  impl_->on_port([pattern = std::string(pattern), cursor, &page, done = std::move(done)](
                     Port& port) mutable { port.reset(pattern, cursor, page, std::move(done)); });
}

void RedisStore::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                      BucketPage& page, Done done) {
  impl_->on_port([pattern = std::string(pattern), cursor, page_size, &page,
                  done = std::move(done)](Port& port) mutable {
    port.list(pattern, cursor, page_size, page, std::move(done));
  });
}

StoreStats RedisStore::stats() const {
  const LocalStats local = impl_->shared.local.stats();
  StoreStats stats;
  stats.buckets = local.buckets;
  stats.overflow_buckets = local.overflow_buckets;
  stats.unsent_buckets = local.unsent + local.under_way;
  stats.overflowed = local.overflowed;
  return stats;
}

std::vector<RedisTargetHealth> RedisStore::health() const { return impl_->shared.health(); }

std::string RedisStore::target_of(std::string_view bucket_key) const {
  for (const auto& port : impl_->ports) {
    if (port->loop().executor().running_in_this_thread()) return port->target_of(bucket_key);
  }
  return {};
}

std::int64_t RedisStore::replicas() const noexcept { return impl_->shared.replicas(); }

}  // namespace stint::store
