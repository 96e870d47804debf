// The address of the client behind proxies that are trusted to tell it.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace stint::gateway {

// An address as 128 bits; IPv4 as IPv4-mapped IPv6, so that both spellings are one address.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  // "203.0.113.7" or "2001:db8::1"; no port, no zone, no leading zeros, no white space.
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text) noexcept;

  [[nodiscard]] bool is_v4() const noexcept;
  // RFC 5952: "203.0.113.7", "2001:db8::1".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// A network such as "10.0.0.0/8", "2001:db8::/32", or one address.
class Cidr {
 public:
  // The error is a sentence for the author of a configuration. Bits after the prefix must be 0.
  [[nodiscard]] static std::expected<Cidr, std::string> parse(std::string_view text);

  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;
  [[nodiscard]] std::string to_string() const;

 private:
  IpAddress network_{};
  int prefix_ = 128;  // of the 128 bits
};

struct RealIpOptions {
  // Peers that are believed. Empty: nobody is, and the peer is the client.
  std::vector<Cidr> trusted_proxies{};
  // True: trusted addresses in the header are skipped, from the right, up to the first that is
  // not trusted. False: only the rightmost address counts, trusted or not.
  bool recursive = true;
  std::string header = "x-forwarded-for";
  // IPv6 clients are counted by this many leading bits of their address, as one client usually
  // has a whole network. 1 to 128.
  int ipv6_prefix = 64;
};

struct ClientAddress {
  std::string address;  // for logs: "2001:db8::1"
  std::string key;      // what is counted (`client_ip`): "203.0.113.7", "2001:db8::/64"
};

// Immutable; any thread.
class ClientAddresses {
 public:
  explicit ClientAddresses(RealIpOptions options = {});

  // `peer`: the address of the connection. All lines of the header count, joined in their order
  // and read from the right. What is no address (an empty entry, a name, `unknown`) ends the
  // walk: the hop before it, which said so, is the client. If all hops are trusted the leftmost
  // one is the client; without the header the peer is. An entry may have a port
  // ("203.0.113.7:80", "[2001:db8::1]:80"), as some proxies write.
  [[nodiscard]] ClientAddress of(std::string_view peer, const http::Fields& fields) const;

  // Whether what this peer says of its client is believed.
  [[nodiscard]] bool trusts(std::string_view peer) const noexcept;
  // Removes the fields that say who a client is and what it asked for (Forwarded, X-Forwarded-*,
  // X-Real-IP and the configured one), so that no upstream believes them: all of them unless the
  // peer is `trusted`, and from everybody those with an underscore, which some servers read as
  // the same name.
  void remove_claims(http::Fields& fields, bool trusted) const;

  // The same address as a client of its own.
  [[nodiscard]] ClientAddress direct(std::string_view peer) const;

 private:
  [[nodiscard]] bool trusted(const IpAddress& address) const noexcept;
  [[nodiscard]] ClientAddress client(const IpAddress& address) const;

  RealIpOptions options_;
};

}  // namespace stint::gateway
