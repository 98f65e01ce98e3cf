#include "experiment/report/crc32c.hpp"

#include <array>
#include <bit>

namespace troupe::report {
namespace {

constexpr std::array<std::uint32_t, 256> kTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? (rest >> 1) ^ kPolynomial : rest >> 1;
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t rest = 0xFFFFFFFF;
  for (const char c : bytes) rest = kTable[(rest ^ static_cast<unsigned char>(c)) & 0xFF] ^ (rest >> 8);
  return ~rest;
}

std::uint32_t masked_crc32c(std::string_view bytes) noexcept {
  constexpr std::uint32_t kOffset = 0xA282EAD8;
  return std::rotr(crc32c(bytes), 15) + kOffset;
}

}  // namespace troupe::report
