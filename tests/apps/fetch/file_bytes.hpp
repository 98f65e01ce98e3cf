/// Contents of files for tests, and their checksums by OpenSSL's one call.
#pragma once

#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace troupe::fetch::testing {

/// Bytes without a short period.
[[nodiscard]] inline std::string some_bytes(std::size_t count, std::uint32_t state = 12345) {
  std::string bytes(count, '\0');
  for (auto& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

[[nodiscard]] inline std::string sha256(const std::string& bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), sum.data());
  std::string text;
  for (const auto byte : sum) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace troupe::fetch::testing
