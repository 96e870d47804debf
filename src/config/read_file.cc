#include "config/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace stint::config {

namespace {

std::unexpected<std::string> failed() {
  return std::unexpected("cannot be read: " + std::generic_category().message(errno));
}

std::expected<std::string, std::string> read_and_close(int file) {
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

}  // namespace

std::expected<std::string, std::string> read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  return read_and_close(file);
}

std::expected<std::string, std::string> read_regular_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed();
  struct stat info{};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(file);
    return std::unexpected("is no regular file");
  }
  return read_and_close(file);
}

}  // namespace stint::config
