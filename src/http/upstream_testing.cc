#include "http/upstream_testing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace stint::http {

namespace {

constexpr Duration kPause = std::chrono::milliseconds{5};

constexpr Duration kPatience = std::chrono::seconds{20};

net::Listener listen(net::EventLoop& loop) {
  net::Endpoint endpoint;
  endpoint.host = "127.0.0.1";
  auto listener = net::Listener::open(loop, endpoint);
  if (!listener) throw std::runtime_error(listener.error().text);
  return std::move(*listener);
}

// How long the request at the front of the text is; nothing: it is not complete.
std::optional<std::size_t> request_size(const std::string& text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string::npos) return std::nullopt;
  std::size_t body = 0;
  const std::string name = "\r\nContent-Length: ";
  const std::size_t length = text.find(name);
  if (length < head) {
    std::from_chars(text.data() + length + name.size(), text.data() + text.size(), body);
  }
  if (text.size() < head + 4 + body) return std::nullopt;
  return head + 4 + body;
}

}  // namespace

Script byte_by_byte(std::string_view text) {
  Script script;
  for (const char c : text) script.push_back(Step::send(std::string(1, c)));
  return script;
}

Script slowly(std::string_view text) {
  Script script;
  for (const Step& step : byte_by_byte(text)) {
    script.push_back(Step::pause());
    script.push_back(step);
  }
  return script;
}

Script operator+(Script a, const Script& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string chunk(std::string_view data) {
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx", data.size());
  return std::string(size.data()) + "\r\n" + std::string(data) + "\r\n";
}

std::string chunked(const std::vector<std::string>& parts) {
  std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& part : parts) text += chunk(part);
  return text + "0\r\n\r\n";
}

ScriptedServer::ScriptedServer(net::EventLoop& loop)
    : loop_(loop), listener_(listen(loop)), accepting_(loop), conversations_(loop), waiting_(loop) {
  accepting_.start(accept());
}

net::Task<void> ScriptedServer::stop() {
  listener_.close();
  conversations_.cancel_all();
  waiting_.cancel_all();
  co_await accepting_.join();
  co_await conversations_.join();
}

Origin ScriptedServer::origin() const {
  Origin origin;
  origin.host = "127.0.0.1";
  origin.port = listener_.port();
  return origin;
}

net::Task<void> ScriptedServer::accept() {
  while (true) {
    auto stream = co_await listener_.accept();
    if (!stream) co_return;
    ++connections_;
    Script script;
    if (scripts_.empty()) {
      ADD_FAILURE() << "a connection that was not expected";
    } else {
      script = std::move(scripts_.front());
      scripts_.pop();
    }
    conversations_.start(converse(std::move(*stream), std::move(script)));
  }
}

void ScriptedServer::note_end(net::NetErrc code) {
  // Else our own patience, or the test, has ended.
  if (code == net::NetErrc::closed || code == net::NetErrc::reset) ++ended_by_client_;
}

net::Task<void> ScriptedServer::wait() { co_await loop_.wait_for(kPatience); }

net::Task<void> ScriptedServer::converse(net::Stream stream, Script script) {
  std::string received;
  std::vector<char> buffer(std::size_t{64} * 1024);
  for (const Step& step : script) {
    switch (step.kind) {
      case Step::Kind::request:
      case Step::Kind::bytes: {
        const std::size_t before = received.size();
        std::optional<std::size_t> size;
        while (!size) {
          if (step.kind == Step::Kind::request) {
            size = request_size(received);
          } else if (received.size() > before) {
            size = 0;
          }
          if (size) break;
          const auto got = co_await stream.read_some(buffer, kPatience);
          if (!got) {
            note_end(got.error().code);
            co_return;
          }
          received.append(buffer.data(), *got);
        }
        if (*size > 0) requests_.push_back(received.substr(0, *size));
        received.erase(0, *size);
        break;
      }
      case Step::Kind::send:
        co_await stream.write(step.text, "", kPatience);
        break;
      case Step::Kind::wait:
        waiting_.start(wait());
        co_await waiting_.join();
        break;
      case Step::Kind::pause:
        co_await loop_.wait_for(kPause);
        break;
      case Step::Kind::close:
        stream.close();
        co_return;
      case Step::Kind::reset:
        stream.abort();
        co_return;
      case Step::Kind::call:
        step.work();
        break;
    }
  }
  while (true) {
    const auto got = co_await stream.read_some(buffer, kPatience);
    if (got) continue;
    note_end(got.error().code);
    co_return;
  }
}

net::Task<Fetched> read_all(UpstreamAnswer& answer) {
  Fetched fetched;
  fetched.status = answer.head().status;
  while (true) {
    const auto piece = co_await answer.read();
    if (!piece) {
      fetched.error = piece.error().code;
      fetched.text = piece.error().text;
      break;
    }
    if (piece->empty()) break;
    fetched.body += *piece;
  }
  co_return fetched;
}

net::Task<Fetched> fetch_all(UpstreamClient& client, Origin origin, UpstreamRequest request,
                             UpstreamLimits limits, UpstreamCancel& cancel) {
  auto answer = co_await client.send(std::move(origin), std::move(request), limits, cancel);
  if (!answer) {
    Fetched fetched;
    fetched.error = answer.error().code;
    fetched.text = answer.error().text;
    co_return fetched;
  }
  co_return co_await read_all(**answer);
}

UpstreamFixture::UpstreamFixture() {
  // Long enough for a busy machine; tests of the limits make them short.
  limits.connect_timeout = kPatience;
  limits.head_timeout = kPatience;
  limits.read_timeout = kPatience;
}

UpstreamFixture::~UpstreamFixture() {
  client.reset();
  wait(server.stop());
}

void UpstreamFixture::turn() {
  loop.post([this] { loop.stop(); });
  loop.run();
}

UpstreamRequest UpstreamFixture::request(std::string method, std::string body) {
  UpstreamRequest request;
  request.method = std::move(method);
  request.target = "/path?query";
  request.body = std::move(body);
  return request;
}

UpstreamClient& UpstreamFixture::use_client() {
  if (!client) client = std::make_unique<UpstreamClient>(loop, limits, nullptr);
  return *client;
}

UpstreamResult<std::unique_ptr<UpstreamAnswer>> UpstreamFixture::send(UpstreamRequest request) {
  return wait(use_client().send(origin(), std::move(request), limits, cancel));
}

Fetched UpstreamFixture::fetch(UpstreamRequest request) {
  return wait(fetch_all(use_client(), origin(), std::move(request), limits, cancel));
}

Fetched UpstreamFixture::fetch(std::string method, std::string body) {
  return fetch(request(std::move(method), std::move(body)));
}

net::Task<void> UpstreamFixture::fetch_into(UpstreamRequest request, Fetched& fetched) {
  auto got = co_await fetch_all(use_client(), origin(), std::move(request), limits, cancel);
  fetched = std::move(got);
}

}  // namespace stint::http
