#include "config/reader.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "config/suggest.h"

namespace stint::config {
namespace {

std::string range_text(std::string_view least, std::string_view most) {
  return "must be from " + std::string(least) + " to " + std::string(most);
}

std::string number_text(double number) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof(text), number);
  return {text, result.ptr};
}

// Stable; what has no line, such as a variable, comes last.
void sort_by_place(std::vector<Fault>& faults) {
  std::vector<std::tuple<bool, int, int, std::size_t>> order;
  order.reserve(faults.size());
  for (const Fault& fault : faults) {
    order.emplace_back(fault.line == 0, fault.line, fault.column, order.size());
  }
  std::ranges::sort(order);
  std::vector<Fault> sorted;
  sorted.reserve(faults.size());
  for (const auto& place : order) sorted.push_back(std::move(faults[std::get<3>(place)]));
  faults = std::move(sorted);
}

// A value of a variable that stands for a list.
std::vector<Node> split_list(const Node& node) {
  std::vector<Node> items;
  std::string_view rest = node.text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    Node copy = node;
    copy.text = item;
    items.push_back(std::move(copy));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return items;
}

}  // namespace

Fault Context::fault_at(const Node& node, std::string key, std::string message) const {
  if (!node.variable.empty()) {
    return {"environment variable " + node.variable, 0, 0, std::move(key), std::move(message)};
  }
  return {file, node.line, node.column, std::move(key), std::move(message)};
}

void Context::sort() {
  sort_by_place(faults);
  sort_by_place(warnings);
}

MapReader::MapReader(Context& context, const Node* node, std::string path, Place place)
    : context_(&context),
      node_(node != nullptr && node->kind == Node::Kind::map ? node : nullptr),
      path_(std::move(path)),
      place_(std::move(place)) {}

std::string MapReader::path(std::string_view name) const {
  if (name.empty()) return path_;
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

Place MapReader::place_of(std::string_view name) const {
  const Node* value = peek(name);
  if (value == nullptr) return {place_.line, place_.column, path(name)};
  return {value->line, value->column, path(name)};
}

const Node* MapReader::peek(std::string_view name) const noexcept {
  return node_ == nullptr ? nullptr : node_->find(name);
}

bool MapReader::given(std::string_view name) const noexcept { return peek(name) != nullptr; }

bool MapReader::require(std::string_view name) {
  if (given(name) || context_->known != nullptr) return true;
  fault(name, "is missing");
  return false;
}

void MapReader::add(std::vector<Fault>& faults, std::string_view name, std::string message) {
  const Node* value = name.empty() ? nullptr : peek(name);
  if (value != nullptr) {
    faults.push_back(context_->fault_at(*value, path(name), std::move(message)));
  } else {
    faults.push_back({context_->file, place_.line, place_.column, path(name), std::move(message)});
  }
}

void MapReader::fault(std::string_view name, std::string message) {
  if (context_->known == nullptr) add(context_->faults, name, std::move(message));
}

void MapReader::fault(std::string_view list, std::size_t index, const std::string& message) {
  const Node* const all = peek(list);
  if (all == nullptr || context_->known != nullptr) return;
  const Node& place = index < all->children.size() ? all->children[index] : *all;
  const std::string element = path(list) + "[" + std::to_string(index) + "]";
  context_->faults.push_back(context_->fault_at(place, element, message));
}

void MapReader::warn(std::string_view name, std::string message) {
  if (context_->known == nullptr) add(context_->warnings, name, std::move(message));
}

void MapReader::unavailable(std::string_view name) {
  if (given(name)) fault(name, "not available yet");
}

const Node* MapReader::node(std::string_view name, KnownKey::Kind kind) {
  known_.push_back(name);
  if (context_->known != nullptr) context_->known->push_back({path(name), kind});
  return peek(name);
}

const Node* MapReader::value_of(std::string_view name, KnownKey::Kind kind) {
  const Node* value = node(name, kind);
  return value == nullptr || value->kind == Node::Kind::broken ? nullptr : value;
}

void MapReader::note(std::string_view name, std::string value, bool secret) {
  if (context_->settings == nullptr) return;
  // A URL with a user may hold a password.
  const bool url_with_user =
      value.find("://") != std::string::npos && value.find('@') != std::string::npos;
  Setting setting{.key = path(name), .value = std::move(value), .secret = secret || url_with_user};
  if (const Node* given = peek(name)) {
    Fault place = context_->fault_at(*given, "", "");
    setting.file = std::move(place.file);
    setting.line = place.line;
    setting.column = place.column;
  }
  context_->settings->push_back(std::move(setting));
}

bool MapReader::text(std::string_view name, std::string& out, Check check) {
  bool good = false;
  if (const Node* value = value_of(name, KnownKey::Kind::value)) {
    auto read = read_text(*value);
    auto wrong = read ? (check == nullptr ? std::nullopt : check(*read))
                      : std::optional(std::move(read.error()));
    good = !wrong;
    if (wrong) fault(name, std::move(*wrong));
    if (good) out = std::move(*read);
  }
  note(name, out);
  return good;
}

bool MapReader::secret(std::string_view name, std::string& out) {
  bool good = false;
  if (const Node* value = value_of(name, KnownKey::Kind::value)) {
    auto read = read_text(*value);
    good = read.has_value();
    if (good) out = std::move(*read);
    if (!good) fault(name, "must be a text: put it in quotes");
  }
  note(name, out, true);
  return good;
}

bool MapReader::texts(std::string_view name, std::vector<std::string>& out, Check check) {
  return read_texts(name, out, check, false);
}

bool MapReader::secrets(std::string_view name, std::vector<std::string>& out) {
  return read_texts(name, out, nullptr, true);
}

bool MapReader::read_texts(std::string_view name, std::vector<std::string>& out, Check check,
                           bool secret) {
  bool good = false;
  if (const Node* value = value_of(name, KnownKey::Kind::list)) {
    const bool from_variable = value->kind == Node::Kind::scalar && !value->variable.empty();
    if (value->kind != Node::Kind::list && !from_variable) {
      fault(name, "must be a list: [a, b], or a line '- a' for each");
      return false;
    }
    const std::vector<Node> split = from_variable ? split_list(*value) : std::vector<Node>{};
    const std::vector<Node>& items = from_variable ? split : value->children;
    std::vector<std::string> texts;
    good = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].kind == Node::Kind::broken) {
        good = false;
        continue;
      }
      auto read = read_text(items[i]);
      auto wrong = read ? (check == nullptr ? std::nullopt : check(*read))
                        : std::optional(std::move(read.error()));
      if (wrong) {
        good = false;
        const std::string message = secret ? "must be a text: put it in quotes" : *wrong;
        context_->faults.push_back(
            context_->fault_at(items[i], path(name) + "[" + std::to_string(i) + "]", message));
      } else {
        texts.push_back(std::move(*read));
      }
    }
    if (good) out = std::move(texts);
  }
  std::string joined;
  for (const std::string& text : out) joined += (joined.empty() ? "" : ",") + text;
  note(name, std::move(joined), secret);
  return good;
}

bool MapReader::boolean(std::string_view name, bool& out) {
  bool good = false;
  if (const Node* value = value_of(name, KnownKey::Kind::value)) {
    auto read = read_boolean(*value);
    good = read.has_value();
    if (good) out = *read;
    if (!good) fault(name, std::move(read.error()));
  }
  note(name, out ? "true" : "false");
  return good;
}

bool MapReader::decimal(std::string_view name, double& out, double least, double most) {
  bool good = false;
  if (const Node* value = value_of(name, KnownKey::Kind::value)) {
    auto read = read_decimal(*value);
    double number = 0;
    if (read) std::from_chars(read->data(), read->data() + read->size(), number);
    good = read && number >= least && number <= most;
    if (good) out = number;
    if (!good) {
      fault(name, read ? range_text(number_text(least), number_text(most)) : read.error());
    }
  }
  note(name, number_text(out));
  return good;
}

bool MapReader::decimal_text(std::string_view name, std::string& out) {
  const Node* value = value_of(name, KnownKey::Kind::value);
  if (value == nullptr) return false;
  auto read = read_decimal(*value);
  if (read) out = std::move(*read);
  if (!read) fault(name, std::move(read.error()));
  return read.has_value();
}

bool MapReader::duration(std::string_view name, std::optional<Duration>& out) {
  const Node* value = value_of(name, KnownKey::Kind::value);
  if (value == nullptr) return false;
  auto read = read_duration(*value);
  if (read) out = *read;
  if (!read) fault(name, std::move(read.error()));
  return read.has_value();
}

bool MapReader::duration_in(std::string_view name, Duration& out, Duration unit, std::int64_t least,
                            std::int64_t most) {
  const auto count = integer_of(name, least, most);
  if (count) out = *count * unit;
  note(name, std::to_string(out / unit));
  return count.has_value();
}

bool MapReader::duration_in(std::string_view name, std::optional<Duration>& out, Duration unit,
                            std::int64_t least, std::int64_t most) {
  const auto count = integer_of(name, least, most);
  if (count) out = *count * unit;
  note(name, out ? std::to_string(*out / unit) : "");
  return count.has_value();
}

std::optional<std::int64_t> MapReader::integer_of(std::string_view name, std::int64_t least,
                                                  std::int64_t most) {
  const Node* value = value_of(name, KnownKey::Kind::value);
  if (value == nullptr) return std::nullopt;
  auto read = read_integer(*value);
  if (!read) {
    fault(name, std::move(read.error()));
    return std::nullopt;
  }
  if (*read < least || *read > most) {
    fault(name, range_text(std::to_string(least), std::to_string(most)));
    return std::nullopt;
  }
  return *read;
}

std::optional<std::size_t> MapReader::choice_of(std::string_view name,
                                                std::span<const std::string_view> names) {
  const Node* value = value_of(name, KnownKey::Kind::value);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Node::Kind::scalar) {
    const auto found = std::ranges::find(names, value->text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  std::string list;
  for (const std::string_view other : names)
    list += (list.empty() ? "" : ", ") + std::string(other);
  const bool scalar = value->kind == Node::Kind::scalar;
  fault(name, (scalar ? quoted(value->text) + " is none of " : "must be one of ") + list);
  return std::nullopt;
}

MapReader MapReader::map(std::string_view name) {
  const Node* value = value_of(name, KnownKey::Kind::map);
  if (value != nullptr && value->kind != Node::Kind::map) {
    fault(name, value->kind == Node::Kind::empty ? "has no value: it must be a map of keys"
                                                 : "must be a map of keys");
  }
  return {*context_, value, path(name), place_of(name)};
}

const Node* MapReader::list_of(std::string_view name, KnownKey::Kind kind) {
  const Node* value = value_of(name, kind);
  if (value == nullptr) return nullptr;
  if (value->kind == Node::Kind::list) return value;
  fault(name, value->kind == Node::Kind::empty ? "has no value: it must be a list, such as []"
                                               : "must be a list: a line '- ' for each");
  return nullptr;
}

std::optional<MapReader> MapReader::element(const Node& list, std::string_view name,
                                            std::size_t index) {
  const Node& item = list.children[index];
  std::string item_path = path(name) + "[" + std::to_string(index) + "]";
  if (item.kind == Node::Kind::broken) return std::nullopt;
  if (item.kind != Node::Kind::map) {
    context_->faults.push_back(context_->fault_at(item, item_path, "must be a map of keys"));
    return std::nullopt;
  }
  Place place{item.line, item.column, item_path};
  return MapReader(*context_, &item, std::move(item_path), std::move(place));
}

void MapReader::finish() {
  if (node_ == nullptr || context_->known != nullptr) return;
  for (const Node& child : node_->children) {
    if (std::ranges::find(known_, child.name) != known_.end()) continue;
    Node at = child;
    at.line = child.key_line;
    at.column = child.key_column;
    const std::string hint = child.name.find(':') != std::string::npos
                                 ? "; is there a space after the colon?"
                                 : suggestion(child.name, known_);
    context_->faults.push_back(context_->fault_at(at, path(child.name), "unknown key" + hint));
  }
}

}  // namespace stint::config
