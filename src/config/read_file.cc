#include "config/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace stint::config {

std::expected<std::string, std::string> read_file(const std::string& path) {
  const auto failed = [] {
    return std::unexpected("cannot be read: " + std::generic_category().message(errno));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  std::string text;
  std::array<char, 16'384> buffer;
  while (true) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      auto why = failed();
      close(file);
      return why;
    }
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(file);
  return text;
}

}  // namespace stint::config
