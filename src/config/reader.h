// Reads maps of known keys from a tree, and says everything that is wrong with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/bootstrap.h"
#include "config/fault.h"
#include "config/node.h"
#include "config/resources.h"
#include "config/scalar.h"

namespace stint::config {

// What is wrong with a text; nothing if it is good.
using Check = std::optional<std::string> (*)(std::string_view text);

struct KnownKey {
  enum class Kind : std::uint8_t { value, list, map, maps, either };
  std::string path;  // "ratelimit.redis.shards[].name"
  Kind kind{};
};

// What the readers of one document share.
struct Context {
  std::string file{};
  std::vector<Fault> faults{};
  std::vector<Fault> warnings{};
  // Where every value that is asked for is noted, given or not; null: nowhere.
  std::vector<Setting>* settings = nullptr;
  // Set: there is no document, and every key that is asked for is noted here.
  std::vector<KnownKey>* known = nullptr;
  int ipv6_prefix = kIpv6Prefix;  // see parse_resources

  // Faults at a node; of one that was put in from the environment, at its variable.
  [[nodiscard]] Fault fault_at(const Node& node, std::string key, std::string message) const;
  // In the order of the file.
  void sort();
};

// One map. Every function that takes the name of a key makes it known; `finish` reports the rest.
// A key that is not given leaves the output as it is. True: it was given and is good.
class MapReader {
 public:
  // Null: the map is not given. `place` is where a missing key is missing.
  MapReader(Context& context, const Node* node, std::string path, Place place);

  bool text(std::string_view name, std::string& out, Check check = nullptr);
  // As text; the value is in no message and masked in the settings.
  bool secret(std::string_view name, std::string& out);
  bool secrets(std::string_view name, std::vector<std::string>& out);
  bool texts(std::string_view name, std::vector<std::string>& out, Check check = nullptr);
  bool boolean(std::string_view name, bool& out);
  bool decimal(std::string_view name, double& out, double least, double most);
  bool decimal_text(std::string_view name, std::string& out);
  bool duration(std::string_view name, std::optional<Duration>& out);
  // A whole number of `unit`.
  bool duration_in(std::string_view name, Duration& out, Duration unit, std::int64_t least,
                   std::int64_t most);
  bool duration_in(std::string_view name, std::optional<Duration>& out, Duration unit,
                   std::int64_t least, std::int64_t most);
  template <class T>
  bool integer(std::string_view name, T& out, std::int64_t least, std::int64_t most) {
    const auto value = integer_of(name, least, most);
    if (value) assign(out, *value);
    note(name, text_of(out));
    return value.has_value();
  }
  template <class E>
  bool choice(std::string_view name, E& out, std::span<const std::string_view> names) {
    const auto index = choice_of(name, names);
    if (index) assign(out, *index);
    if constexpr (std::is_enum_v<E>) note(name, std::string(names[static_cast<std::size_t>(out)]));
    return index.has_value();
  }

  // The map, or a reader of none.
  [[nodiscard]] MapReader map(std::string_view name);
  // Calls `each(MapReader&)` for every map of a list; also once where keys are only noted.
  template <class Each>
  bool maps(std::string_view name, Each each) {
    const Node* list = list_of(name, KnownKey::Kind::maps);
    if (context_->known != nullptr) {
      MapReader reader(*context_, nullptr, path(name) + "[]", place_);
      each(reader);
    }
    if (list == nullptr) return false;
    for (std::size_t i = 0; i < list->children.size(); ++i) {
      std::optional<MapReader> reader = element(*list, name, i);
      if (reader) each(*reader);
    }
    return true;
  }
  // The value as it is, null if not given; for keys of several types.
  [[nodiscard]] const Node* node(std::string_view name, KnownKey::Kind kind);

  [[nodiscard]] bool present() const noexcept { return node_ != nullptr; }
  [[nodiscard]] bool given(std::string_view name) const noexcept;
  [[nodiscard]] const Node* peek(std::string_view name) const noexcept;
  // True if given; else a fault.
  bool require(std::string_view name);

  // A fault of a key, at its value if given, else at the map. An empty name: of the map itself.
  void fault(std::string_view name, std::string message);
  // The same of one element of a list, at the list if the element has no place of its own; none if
  // the list is not given.
  void fault(std::string_view list, std::size_t index, const std::string& message);
  void warn(std::string_view name, std::string message);
  // Notes the value of a key that was read by other means, for the settings.
  void note(std::string_view name, std::string value, bool secret = false);
  // "not available yet", if the key is given.
  void unavailable(std::string_view name);

  // Reports the keys that nobody asked for. To be called once, after all others.
  void finish();

  [[nodiscard]] Context& context() noexcept { return *context_; }
  [[nodiscard]] const Node* self() const noexcept { return node_; }
  [[nodiscard]] std::string path(std::string_view name = {}) const;
  [[nodiscard]] const Place& place() const noexcept { return place_; }
  // Where a key's value stands, or the map if it is not given.
  [[nodiscard]] Place place_of(std::string_view name) const;

 private:
  template <class T>
  struct Inner {
    using Type = T;
  };
  template <class T>
  struct Inner<std::optional<T>> {
    using Type = T;
  };
  template <class T, class V>
  static void assign(T& out, V value) {
    out = static_cast<typename Inner<T>::Type>(value);
  }
  template <class T>
  static std::string text_of(const T& value) {
    if constexpr (std::is_integral_v<T>) {
      return std::to_string(value);
    } else {
      return value ? std::to_string(*value) : "";
    }
  }

  // Null: not given, or broken.
  [[nodiscard]] const Node* value_of(std::string_view name, KnownKey::Kind kind);
  [[nodiscard]] const Node* list_of(std::string_view name, KnownKey::Kind kind);
  [[nodiscard]] std::optional<std::int64_t> integer_of(std::string_view name, std::int64_t least,
                                                       std::int64_t most);
  [[nodiscard]] std::optional<std::size_t> choice_of(std::string_view name,
                                                     std::span<const std::string_view> names);
  [[nodiscard]] std::optional<MapReader> element(const Node& list, std::string_view name,
                                                 std::size_t index);
  bool read_texts(std::string_view name, std::vector<std::string>& out, Check check, bool secret);
  void add(std::vector<Fault>& faults, std::string_view name, std::string message);

  Context* context_;
  const Node* node_;
  std::string path_;
  Place place_;
  std::vector<std::string_view> known_;
};

}  // namespace stint::config
