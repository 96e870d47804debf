// rate_limit and limits: the short form or the list form.
#pragma once

#include <string>
#include <string_view>

#include "config/reader.h"
#include "config/resources.h"

namespace stint::config {

// The limits of the key `name` of a row, each good by itself and no two alike. Nothing where the
// key is not given; where it is, at least one.
void read_limits(MapReader& row, std::string_view name, Limits& out);

// Reports an error of stint::validate for a policy whose limits stand at `places`: at the limit if
// it is one's, else at the part of the row that its field names.
void report(MapReader& row, std::string_view field, const std::string& message,
            const std::vector<Place>& places);

}  // namespace stint::config
