// The one normal form of a request path: what is matched, keyed and forwarded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stint::http {

// Two spellings of one path give one text, so that none gets around a rule or into a bucket of its
// own (RFC 3986, section 6.2.2):
// - escapes of unreserved characters are decoded, all others get upper-case digits; characters
//   that may not stand in a path (`"<>^`{|}`) are escaped;
// - `%2F` stays as it is: it is data inside of a segment;
// - `.` and `..` segments are resolved, also when they were escaped;
// - slashes in a row become one. That is a choice: servers differ, most take them as one, and
//   a rule for `/a/b` must not be passed by `/a//b`.
// Nothing for what has no safe reading: no slash at the beginning, bytes outside of visible ASCII,
// a bad escape, an escaped control byte (%00 to %1F, %7F), a backslash (also escaped), `#` or `?`,
// and a path that climbs above the root.
[[nodiscard]] std::optional<std::string> normalize_path(std::string_view path);

}  // namespace stint::http
