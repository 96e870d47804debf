// A client that sends exactly the bytes that it is told, on a plain blocking socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/socket.h"

namespace stint::net {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);

  // False when the peer no longer takes bytes.
  bool send(std::string_view bytes);
  // What has come up to and with this text; all that came, if the end (or a long time) came first.
  std::string read_until(std::string_view text);
  std::string read(std::size_t size);
  // All up to the end; nothing if it did not come in a long time.
  std::optional<std::string> read_to_end();
  // Whether what ended it was a reset.
  [[nodiscard]] bool was_reset() const noexcept { return reset_; }

  void close_sending();
  void close();
  void reset();
  // How many bytes the kernel keeps for us: for tests of peers that write to slow readers.
  void shrink_receive_buffer();

 private:
  bool fill();
  std::string take(std::size_t size);

  FileDescriptor socket_;
  std::string unread_;
  bool ended_ = false;
  bool reset_ = false;
};

}  // namespace stint::net
