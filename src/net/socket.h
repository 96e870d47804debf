// Owning file descriptors, and addresses as text. For the .cc files of net.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace stint::net {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) noexcept : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] bool valid() const noexcept { return value_ >= 0; }
  // Somebody else owns it from now on.
  void release() noexcept { value_ = -1; }

 private:
  int value_;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

// "203.0.113.7", "2001:db8::1"; mapped IPv4 as IPv4. Empty for other families.
[[nodiscard]] std::string address_text(const SocketAddress& address);

}  // namespace stint::net
