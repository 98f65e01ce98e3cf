#include "service/access/token.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::service {

std::string new_token() {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 32> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    throw std::runtime_error("the system has no random numbers");
  std::string token;
  unsigned bits = 0, held = 0;
  for (const auto byte : random) {
    held = held << 8 | byte;
    for (bits += 8; bits >= 6; bits -= 6) token += kDigits[held >> (bits - 6) & 63];
  }
  return token + kDigits[held << (6 - bits) & 63];
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL has no SHA-256");
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", hash.at(i));
  return hex;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace troupe::service
