// Who may use the admin API.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/bootstrap.h"
#include "http/message.h"

namespace stint::admin {

// Why a request is not answered.
struct Denial {
  int status = 401;  // or 403
  std::string_view code;
  std::string_view message;
};

// With keys: whoever brings one. Without (which the configuration allows on loopback only): every
// program of this machine, but no page of somebody else that runs in a browser here. Such a page
// can reach a listener on loopback in two ways: by a request across origins, which a browser marks,
// and by a name of its own that it has resolve to loopback (DNS rebinding), which shows in Host.
// Thread rule: any thread.
class Guard {
 public:
  explicit Guard(const config::Admin& admin);

  // Nothing if the request may go on.
  [[nodiscard]] std::optional<Denial> check(const http::RequestHead& head) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;

  [[nodiscard]] bool knows_host(std::string_view host) const;
  [[nodiscard]] bool has_key(const http::RequestHead& head) const;

  std::vector<Digest> keys_;  // SHA-256 of each
  std::string host_;          // that we listen on; empty: all
};

}  // namespace stint::admin
