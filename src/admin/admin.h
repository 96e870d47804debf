// The admin API: what an operator asks of a running process, and resets. docs/admin-api.md
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "admin/guard.h"
#include "admin/json.h"
#include "admin/places.h"
#include "admin/program.h"
#include "admin/query.h"
#include "http/server.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "observe/log.h"
#include "store/rate_store.h"

namespace stint::admin {

// Thread rule: the loop's thread.
class Admin {
 public:
  // All must outlive it.
  Admin(net::EventLoop& loop, const config::Admin& config, const Program& program,
        const Places& places, store::RateStore& store, const observe::Log& log);

  // Answers one request: the handler of http::Server.
  [[nodiscard]] net::Task<void> handle(http::Exchange& exchange);

 private:
  struct Answer {
    int status = 200;
    json::object body{};
    std::string allow{};  // 405: what goes
  };

  // Nothing if the request may go on.
  [[nodiscard]] std::optional<Answer> refusal(const http::RequestHead& head) const;
  [[nodiscard]] static net::Task<void> respond(http::Exchange& exchange, Answer answer);
  // All that needs neither the body nor the store.
  [[nodiscard]] Answer at_once(const http::RequestHead& head) const;
  [[nodiscard]] Answer ring() const;
  [[nodiscard]] Answer shards() const;
  [[nodiscard]] Answer location(const http::RequestHead& head) const;
  [[nodiscard]] net::Task<Answer> list(std::string query);
  [[nodiscard]] net::Task<Answer> reset(Parameters::OrWhyNot<Parameters> parameters,
                                        std::string peer);

  net::EventLoop& loop_;
  const Guard guard_;
  const Program& program_;
  const Places& places_;
  store::RateStore& store_;
  const observe::Log& log_;
};

}  // namespace stint::admin
