#include "admin/guard.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstddef>

#include "config/address.h"
#include "config/resources.h"
#include "http/authority.h"

namespace stint::admin {
namespace {

constexpr Denial kNoKey{401, "unauthorized", "needs a header Authorization: Bearer <admin key>"};
constexpr Denial kOtherHost{
    403, "forbidden_host",
    "the Host is none of this listener: without admin keys it answers to loopback names only"};
constexpr Denial kOtherOrigin{403, "forbidden_origin", "comes from a page of another origin"};

// The host and port of an origin, "https://example.com:8443"; whether it is the one of Host.
bool same_origin(std::string_view origin, std::string_view host) {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  const bool tls = origin.starts_with(kHttps);
  if (!tls && !origin.starts_with(kHttp)) return false;  // "null", too
  origin.remove_prefix(tls ? kHttps.size() : kHttp.size());
  const std::uint16_t port = tls ? 443 : 80;
  const auto theirs = http::parse_authority(origin, port);
  const auto ours = http::parse_authority(host, port);
  return theirs && ours && !ours->host.empty() && theirs->text() == ours->text();
}

bool from_elsewhere(const http::Fields& fields) {
  const std::string_view host = fields.get("host").value_or("");
  const std::size_t origins = fields.count("origin");
  if (origins > 1 || (origins == 1 && !same_origin(*fields.get("origin"), host))) return true;
  // Browsers say it of requests without Origin, too.
  const auto site = fields.get("sec-fetch-site");
  return site && *site != "same-origin" && *site != "none";
}

}  // namespace

Guard::Guard(const config::Admin& admin) {
  keys_.reserve(admin.admin_keys.size());
  for (const std::string& key : admin.admin_keys) keys_.push_back(config::hash_key(key));
  const auto listens = http::parse_authority(admin.addr, 0);
  if (listens) host_ = listens->host;
}

bool Guard::knows_host(std::string_view host) const {
  return !host.empty() && (host == host_ || config::is_loopback(host));
}

bool Guard::has_key(const http::RequestHead& head) const {
  constexpr std::string_view kScheme = "bearer ";
  if (head.fields.count("authorization") != 1) return false;
  std::string_view value = *head.fields.get("authorization");
  if (!http::iequal(value.substr(0, kScheme.size()), kScheme)) return false;
  value.remove_prefix(kScheme.size());
  const Digest brought = config::hash_key(value);
  // Every one is looked at, so that the time tells nothing.
  int found = 0;
  for (const Digest& key : keys_) {
    found |= static_cast<int>(CRYPTO_memcmp(key.data(), brought.data(), key.size()) == 0);
  }
  return found != 0;
}

std::optional<Denial> Guard::check(const http::RequestHead& head) const {
  if (keys_.empty() && !knows_host(head.host)) return kOtherHost;
  if (from_elsewhere(head.fields)) return kOtherOrigin;
  if (!keys_.empty() && !has_key(head)) return kNoKey;
  return std::nullopt;
}

}  // namespace stint::admin
