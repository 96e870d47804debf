// The parameters of a request: of its query, or of a JSON body.
#pragma once

#include <expected>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stint::admin {

// By name; strict: a name that is not among `known`, or comes twice, is an error, as a misspelt one
// would otherwise do something else than was meant.
class Parameters {
 public:
  using Known = std::initializer_list<std::string_view>;
  template <class T>
  using OrWhyNot = std::expected<T, std::string>;

  // `query`: with its '?', or empty. Escapes are decoded; a plus is a plus.
  [[nodiscard]] static OrWhyNot<Parameters> of_query(std::string_view query, Known known);
  // An object whose members are texts.
  [[nodiscard]] static OrWhyNot<Parameters> of_json(std::string_view body, Known known);

  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace stint::admin
