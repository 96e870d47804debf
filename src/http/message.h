// HTTP messages as values: what server, upstream client and gateway pass to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::http {

struct Field {
  std::string name;   // as received
  std::string value;  // without white space at its ends
};

[[nodiscard]] bool iequal_bytes(const char* a, const char* b, std::size_t size) noexcept;
// Whether the texts are equal without regard to case. Most are told apart by their lengths.
[[nodiscard]] inline bool iequal(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && iequal_bytes(a.data(), b.data(), a.size());
}

// Fields in their order; names compare without regard to case.
class Fields {
 public:
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const noexcept {
    for (const Field& field : fields_) {
      if (iequal(field.name, name)) return field.value;
    }
    return std::nullopt;
  }
  // All lines of this name joined with ", " (RFC 9110, section 5.2); absent if there is none.
  [[nodiscard]] std::optional<std::string> joined(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
  void add(std::string name, std::string value) {
    if (fields_.capacity() == 0) fields_.reserve(kUsual);
    fields_.emplace_back(std::move(name), std::move(value));
  }
  void set(std::string name, std::string value);  // replaces all lines of the name
  void remove(std::string_view name);
  [[nodiscard]] const std::vector<Field>& all() const noexcept { return fields_; }
  [[nodiscard]] std::vector<Field>& all() noexcept { return fields_; }

 private:
  static constexpr std::size_t kUsual = 16;  // room for as many is made at once

  std::vector<Field> fields_;
};

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
  std::string lines{};  // more of them, written out: each with its CRLF, and sound
};

// Removes the fields that concern one connection only: Connection and those it names,
// Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade (RFC 9110, section 7.6.1).
void remove_hop_by_hop(Fields& fields);

[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace stint::http
