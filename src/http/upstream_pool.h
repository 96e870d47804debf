// Connections that wait for their next request. For the .cc files of the upstream client.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "stint/time.h"

namespace stint::http {

// The one used last is taken first, so that those that the load does not need grow old and go.
// Thread rule: the loop's thread.
class UpstreamPool {
 public:
  UpstreamPool(net::EventLoop& loop, std::size_t per_origin, Duration idle_timeout) noexcept
      : loop_(loop), per_origin_(per_origin), idle_timeout_(idle_timeout) {}
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;

  // A connection whose peer has neither closed it nor sent anything that nobody asked for, as far
  // as that can be known without asking.
  [[nodiscard]] std::optional<net::Stream> take(const std::string& origin);
  // Closes it when its time is over, when its peer does, or when bytes come that nobody asked for.
  void keep(const std::string& origin, net::Stream stream);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept;

 private:
  struct Kept;
  // Oldest first. An origin without connections has none.
  using Origins = std::unordered_map<std::string, std::list<Kept>>;
  using OfOrigin = Origins::value_type;

  struct Kept {
    Kept(UpstreamPool& pool, OfOrigin& origin_in, net::Stream stream_in)
        : origin(origin_in),
          stream(std::move(stream_in)),
          expiry(pool.loop_.deadlines(), [this, &pool] { pool.drop(*this); }) {}
    OfOrigin& origin;
    net::Stream stream;
    net::Deadline expiry;
    std::list<Kept>::iterator self{};
  };

  void drop(Kept& kept) noexcept;

  net::EventLoop& loop_;
  std::size_t per_origin_;
  Duration idle_timeout_;
  Origins origins_{};
  std::size_t size_ = 0;
};

}  // namespace stint::http
