// The rows of the resource collections, each read from its map.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/reader.h"
#include "config/resources.h"

namespace stint::config {

// A row and where it stands, for what can only be judged when all rows are read.
template <class Row>
struct Draft {
  Row row;
  MapReader reader;
};

struct PolicyDraft {
  PolicyRow row;
  MapReader reader;
  bool classic = false;
};

[[nodiscard]] Draft<ProviderKey> read_provider_key(MapReader reader);
[[nodiscard]] Draft<Model> read_model(MapReader reader);
[[nodiscard]] Draft<ApiKey> read_api_key(MapReader reader, const Environment& environment);
[[nodiscard]] Draft<Route> read_route(MapReader reader);
[[nodiscard]] PolicyDraft read_policy(MapReader reader);

// What is wrong with the name of a row; nothing if it is good.
[[nodiscard]] std::optional<std::string> check_name(std::string_view name);

// The key `id` of a row, else what follows from its name. Empty if there is neither.
[[nodiscard]] std::string read_id(MapReader& reader, std::string_view collection,
                                  std::string_view name);

// "2030-01-31T23:59:59Z", also with a fraction and an offset (RFC 3339).
[[nodiscard]] std::optional<TimePoint> parse_time(std::string_view text);

}  // namespace stint::config
