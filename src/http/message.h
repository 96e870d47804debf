// HTTP messages as values: what server, upstream client and gateway pass to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {

struct Field {
  std::string name;   // as received
  std::string value;  // without white space at its ends
};

// Fields in their order; names compare without regard to case.
class Fields {
 public:
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const noexcept;
  // All lines of this name joined with ", " (RFC 9110, section 5.2); absent if there is none.
  [[nodiscard]] std::optional<std::string> joined(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
  void add(std::string name, std::string value);
  void set(std::string name, std::string value);  // replaces all lines of the name
  void remove(std::string_view name);
  [[nodiscard]] const std::vector<Field>& all() const noexcept { return fields_; }
  [[nodiscard]] std::vector<Field>& all() noexcept { return fields_; }

 private:
  std::vector<Field> fields_;
};

[[nodiscard]] bool iequal(std::string_view a, std::string_view b) noexcept;

// Whether one of the comma-separated elements of the field is this word, without regard to case.
[[nodiscard]] bool has_token(const Fields& fields, std::string_view name,
                             std::string_view token) noexcept;

struct RequestHead {
  std::string method;
  std::string target;     // origin form as received: "/v1/x?y=z"
  std::string path;       // its normal form (http/path.h): what is matched, keyed and forwarded
  std::string query;      // with its '?', or empty; as received
  std::string host;       // lower case, without port and final dot; the Host field says the same
  int minor_version = 1;  // HTTP/1.0 or HTTP/1.1
  bool keep_alive = true;
  bool has_body = false;
  Fields fields;
};

struct ResponseHead {
  int status = 200;
  std::string reason{};
  Fields fields{};
};

// Removes the fields that concern one connection only: Connection and those it names,
// Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade (RFC 9110, section 7.6.1).
void remove_hop_by_hop(Fields& fields);

[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace stint::http
