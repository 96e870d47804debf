#include "config/limits_reader.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace stint::config {
namespace {

constexpr std::int64_t kAnyLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kAnyMost = std::numeric_limits<std::int64_t>::max();

struct ShortField {
  std::string_view name;
  std::optional<std::int64_t> ShortLimits::* member;
};
constexpr std::array<ShortField, 9> kShortFields{{{"rps", &ShortLimits::rps},
                                                  {"rpm", &ShortLimits::rpm},
                                                  {"rph", &ShortLimits::rph},
                                                  {"rpd", &ShortLimits::rpd},
                                                  {"tps", &ShortLimits::tps},
                                                  {"tpm", &ShortLimits::tpm},
                                                  {"tph", &ShortLimits::tph},
                                                  {"tpd", &ShortLimits::tpd},
                                                  {"concurrency", &ShortLimits::concurrency}}};

// One at a time, so that every fault is told and every limit knows its place.
void read_short(MapReader reader, Limits& out) {
  for (const ShortField& field : kShortFields) {
    ShortLimits one;
    if (!reader.integer(field.name, one.*field.member, kAnyLeast, kAnyMost)) continue;
    const auto limits = expand(one);
    if (!limits) {
      reader.fault(field.name, limits.error().message);
      continue;
    }
    out.limits.push_back(limits->front());
    out.places.push_back(reader.place_of(field.name));
  }
  reader.finish();
}

// Of a word that is no algorithm: what may stand there, for this unit.
void check_algorithm(MapReader& reader, const LimitEntry& entry) {
  if (parse_algorithm(entry.algorithm)) return;
  const auto unit = parse_unit(entry.unit);
  std::string list = "fixed_window, sliding_window, sliding_log, token_bucket";
  if (unit && *unit == Unit::concurrency) {
    list = "concurrency";
  } else if (unit && *unit != Unit::requests) {
    list = "fixed_window, sliding_window, token_bucket";
  }
  reader.fault("algorithm", quoted(entry.algorithm) + " is none of " + list);
}

// A bucket that holds something and is never refilled refuses everything, which nobody means.
void check_refill(MapReader& reader, const LimitEntry& entry, const Limit& limit) {
  if (limit.algorithm != Algorithm::token_bucket || limit.quota != 0) return;
  if (limit.burst.value_or(0) == 0) return;
  if (entry.capacity) {
    reader.fault("refill_rate",
                 "must be above 0: a bucket that is never refilled refuses everything; write "
                 "quota: 0 and per to mean that");
  } else {
    reader.fault("quota",
                 "must be above 0: a bucket that is never refilled refuses everything, whatever "
                 "its burst; leave burst out to mean that");
  }
}

void read_entry(MapReader& reader, Limits& out) {
  LimitEntry entry;
  const std::size_t faults = reader.context().faults.size();
  reader.text("unit", entry.unit);
  reader.integer("quota", entry.quota, kAnyLeast, kAnyMost);
  if (const Node* per = reader.node("per", KnownKey::Kind::value)) {
    const auto duration = read_duration(*per);
    if (duration) entry.per = per->text;
    if (!duration && per->kind != Node::Kind::broken) reader.fault("per", duration.error());
  }
  if (reader.text("algorithm", entry.algorithm)) check_algorithm(reader, entry);
  reader.integer("burst", entry.burst, kAnyLeast, kAnyMost);
  reader.integer("capacity", entry.capacity, kAnyLeast, kAnyMost);
  reader.decimal_text("refill_rate", entry.refill_rate);
  reader.finish();
  if (!reader.require("unit") || reader.context().faults.size() != faults) return;
  const auto limit = parse(entry);
  if (!limit) {
    reader.fault(limit.error().field, limit.error().message);
    return;
  }
  check_refill(reader, entry, *limit);
  out.limits.push_back(*limit);
  out.places.push_back(reader.place());
}

}  // namespace

void report(MapReader& row, std::string_view field, const std::string& message,
            const std::vector<Place>& places) {
  std::size_t index = places.size();
  if (field.starts_with("limits[")) {
    index = 0;
    for (const char c : field.substr(7)) {
      if (c < '0' || c > '9') break;
      index = index * 10 + static_cast<std::size_t>(c - '0');
    }
  }
  if (index < places.size()) {
    const Place& place = places[index];
    Context& context = row.context();
    context.faults.push_back({context.file, place.line, place.column, place.key, message});
    return;
  }
  // The nearest part of the row that stands in the file.
  const Node* node = row.self();
  std::string_view rest = field;
  while (!rest.empty() && node != nullptr) {
    const std::size_t end = rest.find_first_of(".[");
    const Node* child = node->find(rest.substr(0, end));
    if (child == nullptr) break;
    node = child;
    rest = end == std::string_view::npos ? "" : rest.substr(end);
    while (rest.starts_with('[')) {
      const std::size_t close = rest.find(']');
      const std::size_t number = std::stoul(std::string(rest.substr(1, close - 1)));
      if (number >= node->children.size()) break;
      node = &node->children[number];
      rest = rest.substr(close + 1);
    }
    if (rest.starts_with('.')) rest.remove_prefix(1);
  }
  if (node == nullptr) return;
  row.context().faults.push_back(row.context().fault_at(*node, row.path(field), message));
}

void read_limits(MapReader& row, std::string_view name, Limits& out) {
  const Node* node = row.node(name, KnownKey::Kind::either);
  const std::string path = row.path(name);
  if (row.context().known != nullptr) {
    read_short(MapReader(row.context(), nullptr, path, row.place()), out);
    MapReader entry(row.context(), nullptr, path + "[]", row.place());
    read_entry(entry, out);
    return;
  }
  if (node == nullptr || node->kind == Node::Kind::broken) return;
  const std::size_t faults = row.context().faults.size();
  if (node->kind == Node::Kind::map) {
    read_short(MapReader(row.context(), node, path, row.place_of(name)), out);
  } else if (node->kind == Node::Kind::list) {
    row.maps(name, [&](MapReader& entry) { read_entry(entry, out); });
  } else {
    row.fault(name, "must be a map such as {rpm: 60}, or a list of limits");
  }
  if (row.context().faults.size() != faults) return;
  if (out.empty()) {
    row.fault(name, "holds no limit");
  } else if (const auto good = validate(std::span<const Limit>(out.limits)); !good) {
    report(row, good.error().field, good.error().message, out.places);
  }
}

}  // namespace stint::config
