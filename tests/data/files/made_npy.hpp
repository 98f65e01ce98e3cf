/// Files of numpy.save for tests, byte by byte as NumPy 1.24 writes them. Pure functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::data {

/// `header` is the dictionary; NumPy pads it with spaces so that values begin at a multiple of 64, and ends it with a line feed.
[[nodiscard]] inline std::vector<std::uint8_t> made_npy_of(const std::string& header, const void* values,
                                                           std::size_t bytes, int version = 1) {
  constexpr std::size_t kAligned = 64;
  const std::size_t before = version == 1 ? 10 : 12;
  std::string text = header;
  while ((before + text.size() + 1) % kAligned != 0) text += ' ';
  text += '\n';
  std::vector<std::uint8_t> file{0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<std::uint8_t>(version), 0};
  for (std::size_t i = 0; i < before - 8; ++i) file.push_back(static_cast<std::uint8_t>(text.size() >> (8 * i)));
  file.insert(file.end(), text.begin(), text.end());
  const auto* const from = static_cast<const std::uint8_t*>(values);
  file.insert(file.end(), from, from + bytes);
  return file;
}

/// `type`: "<i8", "<f4", …; `shape`: "(3,)".
template <class Value>
[[nodiscard]] std::vector<std::uint8_t> made_npy(const std::string& type, const std::string& shape,
                                                 const std::vector<Value>& values, int version = 1) {
  return made_npy_of("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", values.data(),
                     values.size() * sizeof(Value), version);
}

}  // namespace troupe::data
