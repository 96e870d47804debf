// What is wrong with a configuration, and where.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::config {

// The environment of the process, read by `main` alone and handed down.
using Environment = std::map<std::string, std::string, std::less<>>;

struct Fault {
  std::string file{};  // as it was named; for a variable: "environment"
  int line = 0;        // from 1; 0: the place has no line
  int column = 0;      // from 1, in characters
  std::string key{};   // full path: "models[0].rate_limit.rpm"; empty: the file as a whole
  std::string message{};

  friend bool operator==(const Fault&, const Fault&) = default;
};

// "stint.yaml:12:5: proxy.adr: unknown key; did you mean addr?"
[[nodiscard]] std::string to_string(const Fault& fault);

// What came of reading a configuration: the value if there are no faults. Warnings never keep it
// from being used. Both are in the order of the file.
template <class T>
struct Loaded {
  std::optional<T> value{};
  std::vector<Fault> faults{};
  std::vector<Fault> warnings{};
};

}  // namespace stint::config
