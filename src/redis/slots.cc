#include "redis/slots.h"

#include <array>
#include <charconv>
#include <utility>

namespace stint::redis {
namespace {

constexpr std::array<std::uint16_t, 256> make_table() {
  constexpr unsigned kPolynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? crc << 1 ^ kPolynomial : crc << 1;
    }
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kTable = make_table();

template <class T>
std::optional<T> parse(std::string_view text) noexcept {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What stands behind a field of INFO.
std::string_view field_of(std::string_view info, std::string_view field) noexcept {
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find('\n', at), info.size());
    std::string_view line = info.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(field) || !line.substr(field.size()).starts_with(':')) continue;
    line.remove_prefix(field.size() + 1);
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  }
  return {};
}

// [endpoint, port, id, [name, value, ...]]: the endpoint is nil where the node does not know it,
// and "?" where it should be a name and there is none; then there may be an "ip".
std::optional<NodePlace> read_place(const Value& node, const NodePlace& asked) {
  const auto port = node[1].number();
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  NodePlace place;
  place.port = static_cast<std::uint16_t>(*port);
  place.host = node[0].text();
  const Value& more = node[3];
  for (std::size_t i = 0; place.host == "?" && i + 1 < more.size(); i += 2) {
    if (more[i].text() == "ip" && !more[i + 1].text().empty()) place.host = more[i + 1].text();
  }
  if (place.host.empty()) place.host = asked.host;
  if (place.host == "?") return std::nullopt;
  return place;
}

}  // namespace

std::uint16_t slot_of(std::string_view hashed) noexcept {
  unsigned crc = 0;
  for (const char c : hashed) {
    crc = (crc << 8 ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(c)) & 0xFFU]) & 0xFFFFU;
  }
  return static_cast<std::uint16_t>(crc % kSlots);
}

std::uint16_t slot_of_key(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return slot_of(key);
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return slot_of(key);
  return slot_of(key.substr(open + 1, close - open - 1));
}

std::expected<SlotsAnswer, std::string> read_slots(const CallResult& info, const CallResult& slots,
                                                   const NodePlace& asked) {
  for (const CallResult* result : {&info, &slots}) {
    if (!*result) return std::unexpected(result->error().text);
  }
  const std::unexpected<std::string> unusable("an answer to CLUSTER SLOTS that is none");
  SlotsAnswer answer;
  answer.ok = field_of(info->text(), "cluster_state") == "ok";
  const auto epoch = parse<std::int64_t>(field_of(info->text(), "cluster_current_epoch"));
  if (!epoch || !slots->is(Value::Kind::array)) return unusable;
  answer.epoch = *epoch;
  for (const Value& entry : slots->elements()) {
    const auto first = entry[0].number();
    const auto last = entry[1].number();
    if (!first || !last || *first < 0 || *last < *first ||
        *last >= static_cast<std::int64_t>(kSlots)) {
      return unusable;
    }
    const auto master = read_place(entry[2], asked);
    if (!master) continue;  // nobody can go there
    SlotRange range;
    range.first = static_cast<std::uint16_t>(*first);
    range.last = static_cast<std::uint16_t>(*last);
    range.master = *master;
    for (std::size_t i = 3; i < entry.size(); ++i) {
      if (auto replica = read_place(entry[i], asked)) range.replicas.push_back(std::move(*replica));
    }
    answer.ranges.push_back(std::move(range));
  }
  return answer;
}

std::optional<Redirection> read_redirection(const CallError& error, const NodePlace& by) {
  Redirection redirection;
  redirection.ask = error.code == "ASK";
  if (!redirection.ask && error.code != "MOVED") return std::nullopt;
  std::string_view text = error.text;
  // Of an error that a script passed on, the code is not at the beginning.
  const std::size_t code = text.find(error.code);
  if (code == std::string_view::npos) return std::nullopt;
  text.remove_prefix(std::min(code + error.code.size() + 1, text.size()));
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto slot = parse<std::uint16_t>(text.substr(0, blank));
  text.remove_prefix(blank + 1);
  text = text.substr(0, text.find(' '));
  const std::size_t colon = text.rfind(':');  // IPv6 comes without brackets
  if (!slot || *slot >= kSlots || colon == std::string_view::npos) return std::nullopt;
  const auto port = parse<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  redirection.slot = *slot;
  redirection.to.host = text.substr(0, colon);
  redirection.to.port = *port;
  if (redirection.to.host.empty()) redirection.to.host = by.host;
  if (redirection.to.host == "?") return std::nullopt;
  return redirection;
}

}  // namespace stint::redis
