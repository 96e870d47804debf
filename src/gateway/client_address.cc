#include "gateway/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace stint::gateway {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr int kMappedBits = 96;

IpAddress masked(IpAddress address, int prefix) noexcept {
  for (int i = 0; i < 16; ++i) {
    const int bits = std::clamp(prefix - i * 8, 0, 8);
    auto& byte = address.bytes[static_cast<std::size_t>(i)];
    byte = static_cast<std::uint8_t>(byte & (0xFF00U >> static_cast<unsigned>(bits)));
  }
  return address;
}

std::string_view trimmed(std::string_view text) noexcept {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// The system writes the zone of a link-local peer: "fe80::1%eth0".
std::optional<IpAddress> peer_address(std::string_view peer) noexcept {
  return IpAddress::parse(peer.substr(0, peer.find('%')));
}

// As a server of the CGI kind compares names: it knows no difference between `-` and `_`.
bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto folded = [](char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  return std::ranges::equal(a, b, {}, folded, folded);
}

bool claims_client(std::string_view name) noexcept {
  constexpr std::string_view kForwarded = "x-forwarded-";
  return same_name(name, "forwarded") || same_name(name, "x-real-ip") ||
         same_name(name.substr(0, kForwarded.size()), kForwarded);
}

bool is_port(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// An entry of a forwarding header: an address, maybe in brackets, maybe with a port.
std::optional<IpAddress> parse_entry(std::string_view entry) noexcept {
  entry = trimmed(entry);
  if (entry.starts_with('[')) {
    const std::size_t close = entry.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view after = entry.substr(close + 1);
    if (!after.empty() && !(after.starts_with(':') && is_port(after.substr(1)))) {
      return std::nullopt;
    }
    entry = entry.substr(1, close - 1);
    return entry.contains(':') ? IpAddress::parse(entry) : std::nullopt;
  }
  if (std::ranges::count(entry, ':') == 1) {
    const std::size_t colon = entry.find(':');
    if (!is_port(entry.substr(colon + 1))) return std::nullopt;
    entry = entry.substr(0, colon);
  }
  return IpAddress::parse(entry);
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) noexcept {
  // inet_pton wants a terminated text; it refuses leading zeros, zones and white space.
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.empty() || text.size() >= terminated.size() || text.contains('\0')) return std::nullopt;
  std::ranges::copy(text, terminated.begin());

  IpAddress address;
  if (::inet_pton(AF_INET6, terminated.data(), address.bytes.data()) == 1) return address;
  std::ranges::copy(kMappedPrefix, address.bytes.begin());
  if (::inet_pton(AF_INET, terminated.data(), address.bytes.data() + 12) == 1) return address;
  return std::nullopt;
}

bool IpAddress::is_v4() const noexcept {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_v4();
  ::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

std::expected<Cidr, std::string> Cidr::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) {
    return std::unexpected(
        "is not an address or network: write \"10.0.0.0/8\", \"2001:db8::/32\" or one address");
  }
  // A mapped address written as IPv6 keeps counting its prefix from the left of 128 bits.
  const bool written_as_v4 = !text.contains(':');
  const int bits = written_as_v4 ? 32 : 128;
  int prefix = bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char* begin = digits.data();
    const char* end = begin + digits.size();
    const auto read = std::from_chars(begin, end, prefix);
    const bool number = read.ec == std::errc() && read.ptr == end && !digits.starts_with('-') &&
                        (digits.size() == 1 || !digits.starts_with('0'));
    if (!number || prefix > bits) {
      return std::unexpected("has a bad prefix length: write a number from 0 to " +
                             std::to_string(bits) + " after the slash");
    }
  }
  Cidr cidr;
  cidr.prefix_ = prefix + (written_as_v4 ? kMappedBits : 0);
  cidr.network_ = masked(*address, cidr.prefix_);
  if (cidr.network_ != *address) {
    return std::unexpected("has bits set after its prefix: write \"" + cidr.to_string() + "\"");
  }
  return cidr;
}

bool Cidr::contains(const IpAddress& address) const noexcept {
  return masked(address, prefix_) == network_;
}

std::string Cidr::to_string() const {
  const bool v4 = network_.is_v4() && prefix_ >= kMappedBits;
  return network_.to_string() + '/' + std::to_string(prefix_ - (v4 ? kMappedBits : 0));
}

ClientAddresses::ClientAddresses(RealIpOptions options) : options_(std::move(options)) {
  options_.ipv6_prefix = std::clamp(options_.ipv6_prefix, 1, 128);
}

bool ClientAddresses::trusted(const IpAddress& address) const noexcept {
  return std::ranges::any_of(options_.trusted_proxies,
                             [&](const Cidr& network) { return network.contains(address); });
}

ClientAddress ClientAddresses::client(const IpAddress& address) const {
  std::string text = address.to_string();
  if (address.is_v4() || options_.ipv6_prefix == 128) return {text, text};
  std::string key = masked(address, options_.ipv6_prefix).to_string() + '/' +
                    std::to_string(options_.ipv6_prefix);
  return {std::move(text), std::move(key)};
}

bool ClientAddresses::trusts(std::string_view peer) const noexcept {
  if (options_.trusted_proxies.empty()) return false;
  const auto address = peer_address(peer);
  return address && trusted(*address);
}

void ClientAddresses::remove_claims(http::Fields& fields, bool trusted) const {
  std::erase_if(fields.all(), [&](const http::Field& field) {
    if (trusted && !field.name.contains('_')) return false;
    return claims_client(field.name) || same_name(field.name, options_.header);
  });
}

ClientAddress ClientAddresses::direct(std::string_view peer) const {
  const auto address = peer_address(peer);
  if (!address) return {std::string(peer), std::string(peer)};
  // IPv4 has one form only, which is there already.
  if (!peer.contains(':')) return {std::string(peer), std::string(peer)};
  return client(*address);
}

ClientAddress ClientAddresses::of(std::string_view peer, const http::Fields& fields) const {
  if (options_.trusted_proxies.empty()) return direct(peer);
  auto current = peer_address(peer);
  if (!current || !trusted(*current)) return direct(peer);

  const std::string list = fields.joined(options_.header).value_or("");
  std::string_view rest = list;
  while (true) {
    const std::size_t comma = rest.rfind(',');
    const std::string_view entry = comma == std::string_view::npos ? rest : rest.substr(comma + 1);
    const auto hop = parse_entry(entry);
    if (!hop) break;
    current = hop;
    if (!options_.recursive || comma == std::string_view::npos || !trusted(*hop)) break;
    rest = rest.substr(0, comma);
  }
  return client(*current);
}

}  // namespace stint::gateway
