// A whole file, once.
#pragma once

#include <expected>
#include <string>

namespace stint::config {

// The bytes of a file of any kind that can be read to an end, or why they cannot be had.
[[nodiscard]] std::expected<std::string, std::string> read_file(const std::string& path);
// As above, of a regular file only: never waits for the writer of a pipe, and always ends.
[[nodiscard]] std::expected<std::string, std::string> read_regular_file(const std::string& path);

}  // namespace stint::config
