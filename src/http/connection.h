// One connection of the server: its requests one after another, each of them an exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/chunk_reader.h"
#include "http/input_buffer.h"
#include "http/request_parser.h"
#include "http/server.h"
#include "net/deadline.h"
#include "net/stream.h"

namespace stint::http {

// What the connections of a server share.
class ServerContext {
 public:
  // The server's members are set after it was made.
  ServerContext(net::EventLoop& loop_in, const ServerLimits& limits_in, Handler handler_in,
                const Server& server)
      : loop(loop_in),
        limits(limits_in),
        handler(std::move(handler_in)),
        on_exception(server.on_exception),
        on_refused(server.on_refused) {}

  net::EventLoop& loop;
  ServerLimits limits;
  Handler handler;
  const std::function<void(const std::string& what)>& on_exception;
  const std::function<void(int status, const std::string& peer)>& on_refused;
  bool draining = false;
  std::size_t exchanges = 0;

  // The value of Date, formatted once a second.
  [[nodiscard]] std::string_view date();

 private:
  std::chrono::sys_seconds date_second_{};
  std::string date_;
};

class Connection final : public Exchange {
 public:
  Connection(ServerContext& server, net::Stream stream);

  // Serves requests until the connection is to end.
  [[nodiscard]] net::Task<void> run();

  // Closes it if it waits for a request of which nothing has arrived. A connection that has not
  // had its first request yet is spared unless `also_new`: its client connects to send one.
  void close_idle(bool also_new) noexcept;
  // Ends it as if the client had gone.
  void end() noexcept;

  [[nodiscard]] const RequestHead& head() const noexcept override { return request_.head; }
  [[nodiscard]] const std::string& peer_address() const noexcept override {
    return stream_.peer_address();
  }
  [[nodiscard]] net::Task<net::NetResult<std::string>> read_body() override;
  [[nodiscard]] const Refusal* body_refusal() const noexcept override {
    return body_refusal_ ? &*body_refusal_ : nullptr;
  }
  [[nodiscard]] net::Task<net::NetResult<void>> respond(ResponseHead head,
                                                        std::string body) override;
  [[nodiscard]] net::Task<net::NetResult<void>> start(
      ResponseHead head, std::optional<std::uint64_t> content_length) override;
  [[nodiscard]] net::Task<net::NetResult<void>> write(std::string_view bytes) override;
  [[nodiscard]] net::Task<net::NetResult<void>> finish() override;
  void abort() noexcept override;
  [[nodiscard]] bool started() const noexcept override { return answer_ != Answer::none; }
  void watch_client(std::move_only_function<void()> gone) override;
  void unwatch_client() noexcept override;
  [[nodiscard]] bool client_gone() const noexcept override { return client_gone_; }

 private:
  enum class Answer : unsigned char { none, streaming, finished, broken };
  enum class Coding : unsigned char { none, length, chunked, until_close };

  // The next head; false if the connection is to end without a further answer.
  net::Task<bool> read_request();
  net::Task<bool> wait_for_request();
  net::Task<void> handle();
  net::Task<net::NetResult<std::string>> read_chunks(Duration deadline);
  net::Task<net::NetResult<std::string>> read_length(Duration deadline);
  // Reads more of the connection behind what is in `input_`.
  net::Task<net::NetResult<void>> read_more(std::size_t cap, Duration deadline);
  // What the handler left of the body; false if the connection cannot be used any more.
  net::Task<bool> skip_body();
  // Answers a request that no handler has seen.
  net::Task<void> refuse(Refusal refusal);
  [[nodiscard]] net::NetError refuse_body(const Refusal& refusal);
  // A request that its handler has left without an answer.
  net::Task<void> answer_for_handler();
  // Lets the client read the answer before the connection goes: closing with bytes unread would
  // reset it.
  net::Task<void> linger();
  void broken_off() noexcept;
  net::Task<net::NetResult<void>> send(std::string_view first, std::string_view second,
                                       std::string_view third);
  // Writes `text_`: the head of the answer.
  void compose(ResponseHead head, std::optional<std::uint64_t> content_length, bool whole);
  [[nodiscard]] bool can_keep_alive() const noexcept;
  [[nodiscard]] bool without_body(int status) const noexcept;
  [[nodiscard]] std::optional<net::NetError> refuse_to_answer() const;

  void arm_watch();
  void look_at_client();
  void client_has_gone() noexcept;

  ServerContext& server_;
  net::Stream stream_;
  InputBuffer input_;
  std::size_t input_cap_;
  HeadScanner scanner_;
  bool idle_ = false;  // waits for the first byte of a request
  bool had_request_ = false;
  bool in_exchange_ = false;

  // Of the exchange under way.
  ParsedHead request_;
  ChunkReader chunks_;
  std::uint64_t body_left_ = 0;  // of a body with a length: not taken from the connection yet
  bool body_asked_for_ = false;
  bool body_done_ = false;
  std::optional<Refusal> body_refusal_;
  Answer answer_ = Answer::none;
  Coding coding_ = Coding::none;
  std::uint64_t answer_left_ = 0;  // of an answer with a length
  bool keep_alive_ = false;        // after this answer
  bool client_gone_ = false;
  std::string text_;  // the head, then the sizes of chunks
  std::move_only_function<void()> gone_;
  std::unique_ptr<net::Deadline> look_again_;
};

}  // namespace stint::http
