// A program whose configuration is a text, and an exchange that carries one request to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "admin/program.h"
#include "http/server.h"

namespace stint::admin {

class TextProgram final : public Program {
 public:
  TextProgram(const std::string& bootstrap, const std::string& resources) {
    auto loaded = config::parse_bootstrap("stint.yaml", bootstrap, {});
    for (const config::Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    bootstrap_ = std::move(loaded.value).value_or(config::Bootstrap());
    if (resources.empty()) return;
    auto snapshot = config::load_snapshot("resources.yaml", resources, {}, 3);
    for (const config::Fault& fault : snapshot.faults) ADD_FAILURE() << to_string(fault);
    snapshot_ = snapshot.value.value_or(nullptr);
  }

  ConfigReport last{};

  [[nodiscard]] const config::Bootstrap& bootstrap() const override { return bootstrap_; }
  [[nodiscard]] std::shared_ptr<const config::Snapshot> snapshot() const override {
    return snapshot_;
  }
  [[nodiscard]] ConfigReport report() const override { return last; }

 private:
  config::Bootstrap bootstrap_;
  std::shared_ptr<const config::Snapshot> snapshot_;
};

class OneExchange final : public http::Exchange {
 public:
  http::RequestHead request;
  std::optional<std::string> body = "";  // nothing: it cannot be read
  std::optional<http::ResponseHead> answer;
  std::string answer_body;

  const http::RequestHead& head() const noexcept override { return request; }
  const std::string& peer_address() const noexcept override { return peer_; }
  net::Task<net::NetResult<std::string>> read_body() override {
    if (!body) co_return net::failure(net::NetErrc::failed, "gone");
    co_return *body;
  }
  net::Task<net::NetResult<void>> respond(http::ResponseHead head, std::string text) override {
    answer = std::move(head);
    answer_body = std::move(text);
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> start(http::ResponseHead, std::optional<std::uint64_t>) override {
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> write(std::string_view) override {
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> finish() override { co_return net::NetResult<void>{}; }
  void abort() noexcept override {}
  bool started() const noexcept override { return answer.has_value(); }
  void watch_client(std::move_only_function<void()>) override {}
  void unwatch_client() noexcept override {}
  bool client_gone() const noexcept override { return false; }

 private:
  std::string peer_ = "127.0.0.1";
};

}  // namespace stint::admin
