// What arrives by the network, before anybody has looked at it: no bytes crash a parser, what is
// accepted can be read in one way only, and how the bytes are cut into pieces makes no difference.
//
// Inputs read as text, so that seeds can be written by hand; the second byte says where to cut:
//   q<cut><head of a request>
//   a<cut><responses>     h<cut>: to HEAD
//   s<cut><events>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/authority.h"
#include "http/path.h"
#include "http/request_parser.h"
#include "http/response_parser.h"
#include "http/server.h"
#include "http/sse.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/require.h"

namespace stint::http {
namespace {

// --- Requests

bool visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

bool is_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

void require_sound(const ParsedHead& parsed, const ServerLimits& limits) {
  const RequestHead& head = parsed.head;
  STINT_REQUIRE(!head.method.empty() && visible(head.method));
  STINT_REQUIRE(visible(head.target) && visible(head.path));
  if (head.path != "*") {
    STINT_REQUIRE(normalize_path(head.path) == head.path);
    STINT_REQUIRE(head.query.empty() || head.query.front() == '?');
  }
  for (const Field& field : head.fields.all()) {
    STINT_REQUIRE(!field.name.empty() && visible(field.name));
    STINT_REQUIRE(field.name.find_first_of(": \t") == std::string::npos);
    STINT_REQUIRE(is_line(field.value));
  }
  // One host, and the field says the same as the gateway goes by.
  STINT_REQUIRE(head.fields.count("Host") <= 1);
  if (head.minor_version == 1) STINT_REQUIRE(head.fields.count("Host") == 1);
  if (const auto host = head.fields.get("Host")) {
    const auto authority = parse_authority(*host, 80);
    STINT_REQUIRE(authority && authority->host == head.host && authority->text() == *host);
  }
  // One length.
  const std::size_t lengths = head.fields.count("Content-Length");
  const std::size_t encodings = head.fields.count("Transfer-Encoding");
  STINT_REQUIRE(lengths + encodings <= 1);
  STINT_REQUIRE(parsed.framing.chunked == (encodings == 1));
  STINT_REQUIRE(parsed.framing.length <= limits.body_bytes);
  if (encodings == 1) STINT_REQUIRE(head.minor_version == 1);
}

void check_request(std::string_view text, std::size_t cut) {
  ServerLimits limits;
  limits.request_line_bytes = 256;
  limits.header_bytes = 512;
  limits.header_count = 8;
  const auto whole = HeadScanner().scan(text, limits);

  // As it arrives: what is refused then is refused as a whole too, and the other way round.
  HeadScanner scanner;
  std::string arrived;
  decltype(scanner.scan({}, limits)) found;
  fuzz::in_pieces(text, cut, [&](std::string_view piece) {
    arrived += piece;
    found = scanner.scan(arrived, limits);
    return found && !*found;
  });
  STINT_REQUIRE(found.has_value() == whole.has_value());
  if (!whole) {
    STINT_REQUIRE(found.error().status == whole.error().status);
    return;
  }
  STINT_REQUIRE(*found == *whole);
  if (!*whole) return;
  STINT_REQUIRE(**whole <= text.size() && text.substr(0, **whole).ends_with("\r\n\r\n"));

  const auto parsed = parse_head(text.substr(0, **whole), limits);
  if (!parsed) {
    STINT_REQUIRE(parsed.error().status >= 400 && parsed.error().status < 600);
    STINT_REQUIRE(!parsed.error().message.empty());
    return;
  }
  require_sound(*parsed, limits);
}

// --- Responses

struct Answer {
  int status = 0;
  std::string fields{};
  std::string body{};
  std::size_t taken = 0;
  bool broken = false;
  bool ended = false;
  bool may_end = false;
  bool keep_alive = false;

  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer read_answer(std::string_view text, std::size_t cut, ResponseTo to) {
  Answer answer;
  ResponseParser parser(to, 1024);
  fuzz::in_pieces(text, cut, [&](std::string_view piece) {
    const std::size_t size = piece.size();
    for (;;) {
      const auto event = parser.next(piece);
      if (!event) {
        STINT_REQUIRE(!event.error().empty());
        answer.broken = true;
        return false;
      }
      if (*event == ResponseParser::Event::head) {
        answer.status = parser.head().status;
        for (const Field& field : parser.head().fields.all()) {
          STINT_REQUIRE(!field.name.empty() && visible(field.name) && is_line(field.value));
          answer.fields += field.name + ":" + field.value + "\n";
        }
      } else if (*event == ResponseParser::Event::body) {
        STINT_REQUIRE(!parser.body().empty());
        answer.body += parser.body();
      } else {
        break;
      }
    }
    answer.taken += size - piece.size();
    return !parser.ended();
  });
  answer.ended = parser.ended();
  if (answer.broken) {  // how far it came depends on the pieces
    answer.fields.clear();
    answer.body.clear();
    answer.status = 0;
    answer.taken = 0;
    return answer;
  }
  answer.may_end = parser.may_end_here();
  answer.keep_alive = answer.ended && parser.keep_alive();
  if (to == ResponseTo::head_request) STINT_REQUIRE(answer.body.empty());
  if (answer.status == 204 || answer.status == 304) STINT_REQUIRE(answer.body.empty());
  return answer;
}

void check_answer(std::string_view text, std::size_t cut, ResponseTo to) {
  const Answer whole = read_answer(text, std::max<std::size_t>(text.size(), 1), to);
  STINT_REQUIRE(read_answer(text, cut, to) == whole);
  if (whole.ended) STINT_REQUIRE(whole.status >= 200 && whole.status <= 999);
}

// --- Event streams

struct Event {
  SseBlock::Kind kind{};
  std::string data{};
  std::string name{};
  std::string raw{};
  std::uint64_t begin = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

std::vector<Event> read_events(std::string_view text, std::size_t cut) {
  std::vector<Event> events;
  const auto keep = [&events](const SseBlock& block) {
    if (block.kind == SseBlock::Kind::oversized && !block.first) {
      STINT_REQUIRE(!events.empty() && events.back().kind == block.kind);
      events.back().raw += block.raw;
      return;
    }
    events.push_back({block.kind, std::string(block.data), std::string(block.name),
                      std::string(block.raw), block.begin});
  };
  SseSplitter splitter(64);
  fuzz::in_pieces(text, cut, [&](std::string_view piece) {
    while (const auto block = splitter.next(piece)) keep(*block);
    STINT_REQUIRE(piece.empty());
    return true;
  });
  if (const auto block = splitter.finish()) keep(*block);
  return events;
}

void check_events(std::string_view text, std::size_t cut) {
  const std::vector<Event> whole = read_events(text, std::max<std::size_t>(text.size(), 1));
  STINT_REQUIRE(read_events(text, cut) == whole);
  std::string put_together;
  for (const Event& event : whole) {
    STINT_REQUIRE(event.begin == put_together.size());
    put_together += event.raw;
  }
  STINT_REQUIRE(put_together == text);
}

void check(std::string_view input) {
  if (input.size() < 2) return;
  const std::size_t cut = fuzz::cut_of(input[1]);
  const std::string_view text = input.substr(2);
  switch (input.front()) {
    case 'q':
      return check_request(text, cut);
    case 'a':
      return check_answer(text, cut, ResponseTo::other_request);
    case 'h':
      return check_answer(text, cut, ResponseTo::head_request);
    case 's':
      return check_events(text, cut);
    default:
      return;
  }
}

}  // namespace
}  // namespace stint::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stint::http::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
