#include "redis/script.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace stint::redis {
namespace {

std::string sha1_hex(const std::string& body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(body.data(), body.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("SHA-1, by which Redis names scripts, is not available in OpenSSL");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

}  // namespace

Script::Script(std::string name, std::string body)
    : name_(std::move(name)), body_(std::move(body)), sha1_(sha1_hex(body_)) {}

}  // namespace stint::redis
