// An exchange that is no connection: one request, and what was answered to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "http/server.h"

namespace stint::http {

// Takes answers that are given whole; those in pieces go nowhere.
class BufferedExchange : public Exchange {
 public:
  explicit BufferedExchange(std::string peer) : peer_(std::move(peer)) {}

  RequestHead request;
  std::optional<std::string> body = "";  // nothing: it cannot be read
  std::optional<ResponseHead> answer;
  std::string answer_body;

  const RequestHead& head() const noexcept override { return request; }
  const std::string& peer_address() const noexcept override { return peer_; }
  net::Task<net::NetResult<std::string>> read_body() override {
    if (!body) co_return net::failure(net::NetErrc::failed, "gone");
    co_return *body;
  }
  net::Task<net::NetResult<void>> respond(ResponseHead head, std::string text) override {
    answer = std::move(head);
    answer_body = std::move(text);
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> start(ResponseHead, std::optional<std::uint64_t>) override {
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
  std::string peer_;
};

}  // namespace stint::http
