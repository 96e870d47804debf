#include "http/sse.h"

#include <gtest/gtest.h>
// After gtest.h, which it does not include.
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {
namespace {

using Kind = SseBlock::Kind;

// A block that owns its texts; the parts of an oversized event are put together.
struct Seen {
  Kind kind = Kind::event;
  std::string data;
  std::string name;
  std::string raw;
  std::uint64_t begin = 0;

  friend bool operator==(const Seen&, const Seen&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
    return out << static_cast<int>(seen.kind) << " '" << seen.data << "' '" << seen.name << "' '"
               << seen.raw << "' at " << seen.begin;
  }
};

void add(std::vector<Seen>& seen, const SseBlock& block) {
  if (!block.first) {
    seen.back().raw += block.raw;
    return;
  }
  seen.push_back({block.kind, std::string(block.data), std::string(block.name),
                  std::string(block.raw), block.begin});
}

constexpr std::size_t kBound = 1000;

std::vector<Seen> split(const std::vector<std::string>& pieces, std::size_t bound = kBound) {
  SseSplitter splitter(bound);
  std::vector<Seen> seen;
  for (const std::string& piece : pieces) {
    std::string_view rest = piece;
    while (const auto block = splitter.next(rest)) add(seen, *block);
    EXPECT_TRUE(rest.empty());
  }
  if (const auto block = splitter.finish()) add(seen, *block);
  EXPECT_FALSE(splitter.finish().has_value());
  return seen;
}

std::vector<Seen> split(std::string text, std::size_t bound = kBound) {
  return split(std::vector<std::string>{std::move(text)}, bound);
}

// The data of the events, as a browser would hand them out.
std::vector<std::string> data_of(const std::string& text) {
  std::vector<std::string> data;
  for (const Seen& seen : split(text)) {
    if (seen.kind == Kind::event) data.push_back(seen.data);
  }
  return data;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}

std::string with_line_ends(std::string_view text, std::string_view line_end) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += line_end;
    } else {
      out += c;
    }
  }
  return out;
}

using Strings = std::vector<std::string>;

TEST(Sse, AnEventHasItsDataNameAndBytes) {
  const std::string text = "event: message_start\ndata: {\"a\":1}\n\n";
  EXPECT_EQ(split(text), (std::vector<Seen>{{Kind::event, "{\"a\":1}", "message_start", text, 0}}));
}

TEST(Sse, TheExamplesOfTheStandard) {
  EXPECT_EQ(data_of("data: YHOO\ndata: +2\ndata: 10\n\n"), Strings{"YHOO\n+2\n10"});
  EXPECT_EQ(data_of(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                    "data:  third event\n\n"),
            (Strings{"first event", "second event", " third event"}));
  EXPECT_EQ(data_of("data\n\ndata\ndata\n\ndata:"), (Strings{"", "\n"}));
  EXPECT_EQ(data_of("data:test\n\ndata: test\n\n"), (Strings{"test", "test"}));
}

TEST(Sse, FieldNamesAreExact) {
  EXPECT_EQ(data_of("Data: a\n\n"), Strings{});
  EXPECT_EQ(data_of(" data: a\n\n"), Strings{});
  EXPECT_EQ(data_of("data : a\n\n"), Strings{});
  EXPECT_EQ(data_of("database: a\n\n"), Strings{});
  EXPECT_EQ(data_of("data: a: b\n\n"), Strings{"a: b"});
  EXPECT_EQ(data_of("data:\ta\n\n"), Strings{"\ta"});
}

TEST(Sse, TheLastNameCounts) {
  const auto seen = split("event: a\ndata: x\nevent: b\n\n");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].name, "b");
}

TEST(Sse, LineEndsOfOneKindGiveEachBlockItsOwnBytes) {
  const std::string first = ":hi\nevent: a\ndata: 1\ndata: 2\n\n";
  const std::string second = "data: \xF0\x9F\x98\x80\n\n";
  for (const std::string_view line_end : {"\n", "\r\n", "\r"}) {
    const std::string a = with_line_ends(first, line_end);
    const std::string b = with_line_ends(second, line_end);
    const std::vector<Seen> want{{Kind::event, "1\n2", "a", a, 0},
                                 {Kind::event, "\xF0\x9F\x98\x80", "", b, a.size()}};
    EXPECT_EQ(split(a + b), want);
    EXPECT_EQ(split(bytes_of(a + b)), want);
  }
}

TEST(Sse, ABlockOfOneKindOfLineEndDoesNotWaitForTheNext) {
  for (const std::string_view line_end : {"\n", "\r\n", "\r"}) {
    SseSplitter splitter(kBound);
    const std::string text = with_line_ends("data: 1\n\n", line_end);
    std::string_view piece = text;
    EXPECT_TRUE(splitter.next(piece).has_value());
  }
}

TEST(Sse, MixedLineEnds) {
  EXPECT_EQ(data_of("data: a\r\ndata: b\ndata: c\r\r\ndata: d\n\r\ndata: e\r\n\n"),
            (Strings{"a\nb\nc", "d", "e"}));
  // The LF after CR CR belongs to the second CR, and comes too late for the block.
  EXPECT_EQ(split("data: a\r\r\ndata: b\n\n"),
            (std::vector<Seen>{{Kind::event, "a", "", "data: a\r\r", 0},
                               {Kind::event, "b", "", "\ndata: b\n\n", 9}}));
}

TEST(Sse, ABareCarriageReturnAfterOtherLineEndsIsDecidedByTheNextByte) {
  SseSplitter splitter(kBound);
  std::string_view piece = "data: a\n\r";
  EXPECT_FALSE(splitter.next(piece).has_value());
  piece = "data: b\n\n";
  const auto first = splitter.next(piece);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->raw, "data: a\n\r");
  const auto second = splitter.next(piece);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->raw, "data: b\n\n");
}

TEST(Sse, TheEndOfTheStreamDecidesABareCarriageReturn) {
  EXPECT_EQ(split("data: a\n\r"), (std::vector<Seen>{{Kind::event, "a", "", "data: a\n\r", 0}}));
}

TEST(Sse, SkipsAByteOrderMarkAtTheStartOnly) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(data_of(mark + "data: a\n\n" + mark + "data: b\n\n"), Strings{"a"});
  EXPECT_EQ(split(mark + "\ndata: a\n\n"),
            (std::vector<Seen>{{Kind::no_event, "", "", mark + "\n", 0},
                               {Kind::event, "a", "", "data: a\n\n", 4}}));
  EXPECT_EQ(split(bytes_of(mark + "data: a\n\n")),
            (std::vector<Seen>{{Kind::event, "a", "", mark + "data: a\n\n", 0}}));
  // Half a mark is text.
  EXPECT_EQ(split("\xEF\xBB\ndata: a\n\n").size(), 1U);
}

TEST(Sse, CommentsAndBlankLinesAreBlocksWithoutAnEvent) {
  EXPECT_EQ(split(": keep-alive\n\n\nevent: x\n\n"),
            (std::vector<Seen>{{Kind::no_event, "", "", ": keep-alive\n\n", 0},
                               {Kind::no_event, "", "", "\n", 14},
                               {Kind::no_event, "", "x", "event: x\n\n", 15}}));
}

TEST(Sse, WhatTheStreamEndsInIsUnfinished) {
  EXPECT_EQ(split("data: a\n\ndata: [DONE]\n"),
            (std::vector<Seen>{{Kind::event, "a", "", "data: a\n\n", 0},
                               {Kind::unfinished, "[DONE]", "", "data: [DONE]\n", 9}}));
  EXPECT_EQ(split(""), std::vector<Seen>{});
}

TEST(Sse, TheBoundIsExact) {
  const std::string text = "data: 123456\n\n";
  EXPECT_EQ(split(text, text.size())[0].kind, Kind::event);
  EXPECT_EQ(split(text, text.size() - 1)[0].kind, Kind::oversized);
  EXPECT_EQ(split(bytes_of(text), text.size())[0].kind, Kind::event);
  EXPECT_EQ(split(bytes_of(text), text.size() - 1)[0].kind, Kind::oversized);
}

TEST(Sse, AnOversizedEventIsHandedOutUnreadAndTheNextIsRead) {
  const std::string big = "event: big\ndata: " + std::string(5000, 'x') + "\r\n\r\n";
  const std::vector<Seen> want{{Kind::event, "a", "", "data: a\n\n", 0},
                               {Kind::oversized, "", "", big, 9},
                               {Kind::event, "b", "", "data: b\n\n", 9 + big.size()}};
  EXPECT_EQ(split("data: a\n\n" + big + "data: b\n\n", 100), want);
  EXPECT_EQ(split(bytes_of("data: a\n\n" + big + "data: b\n\n"), 100), want);
}

TEST(Sse, NeighbouringOversizedEventsAreToldApart) {
  const std::string big = "data: " + std::string(20, 'x') + "\n\n";
  EXPECT_EQ(split(big + big, 10), (std::vector<Seen>{{Kind::oversized, "", "", big, 0},
                                                     {Kind::oversized, "", "", big, big.size()}}));
}

TEST(Sse, AnEventOfMegabytesIsPassedOnWithoutBeingKept) {
  SseSplitter splitter(100);
  const std::string piece(std::size_t{16} * 1024, 'x');
  std::uint64_t passed = 0;
  for (int i = 0; i < 320; ++i) {
    std::string_view rest = piece;
    while (const auto block = splitter.next(rest)) {
      EXPECT_EQ(block->kind, Kind::oversized);
      EXPECT_EQ(block->begin, passed);
      passed += block->raw.size();
    }
  }
  EXPECT_EQ(passed, 320U * piece.size());
}

// ---- Properties ----

std::string any_stream() {
  // Tokens that meet in every way that matters.
  static const std::array<std::string, 16> kTokens{"\n",
                                                   "\r",
                                                   "\r\n",
                                                   "\n\n",
                                                   "\r\n\r\n",
                                                   "\r\r",
                                                   "data: a",
                                                   "data",
                                                   "data:b",
                                                   "event",
                                                   "event:e",
                                                   ": note",
                                                   "id: 7",
                                                   "\xEF\xBB\xBF",
                                                   "\xF0\x9F\x98\x80",
                                                   "data: 0123456789"};
  std::string text;
  const auto picks = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(0, kTokens.size()));
  for (const std::size_t pick : picks) text += kTokens[pick];
  return text;
}

std::vector<std::string> any_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(0, std::min<std::size_t>(text.size() - at, 9));
    pieces.push_back(text.substr(at, size + 1));
    at += size + 1;
  }
  return pieces;
}

// What the standard says, read line by line over the whole text: data and name of each event.
std::vector<std::pair<std::string, std::string>> by_the_standard(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      lines += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      lines += text[i];
    }
  }
  std::vector<std::pair<std::string, std::string>> events;
  std::string data;
  std::string name;
  for (std::size_t end = 0; (end = lines.find('\n')) != std::string::npos;
       lines.erase(0, end + 1)) {
    const std::string line = lines.substr(0, end);
    if (line.empty()) {
      if (!data.empty()) events.emplace_back(data.substr(0, data.size() - 1), name);
      data.clear();
      name.clear();
    } else if (line[0] != ':') {
      const std::size_t colon = line.find(':');
      std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
      if (value.starts_with(' ')) value.erase(0, 1);
      if (line.substr(0, colon) == "data") data += value + "\n";
      if (line.substr(0, colon) == "event") name = value;
    }
  }
  return events;
}

RC_GTEST_PROP(SseProperty, AnySplitGivesTheSameBlocks, ()) {
  const std::string text = any_stream();
  const auto bound = *rc::gen::elementOf(std::vector<std::size_t>{1, 10, 20, kBound});
  const auto whole = split(text, bound);
  RC_ASSERT(split(any_pieces(text), bound) == whole);
  RC_ASSERT(split(bytes_of(text), bound) == whole);
}

RC_GTEST_PROP(SseProperty, TheBlocksAreTheStream, ()) {
  const std::string text = any_stream();
  std::string joined;
  for (const Seen& seen : split(any_pieces(text), 12)) {
    RC_ASSERT(seen.begin == joined.size());
    joined += seen.raw;
  }
  RC_ASSERT(joined == text);
}

RC_GTEST_PROP(SseProperty, TheEventsAreThoseOfTheStandard, ()) {
  const std::string text = any_stream();
  std::vector<std::pair<std::string, std::string>> events;
  for (const Seen& seen : split(any_pieces(text))) {
    if (seen.kind == Kind::event) events.emplace_back(seen.data, seen.name);
  }
  RC_ASSERT(events == by_the_standard(text));
}

}  // namespace
}  // namespace stint::http
