/// Arrays in files of NumPy (numpy.save), of format versions 1 to 3. Thread rule: pure but for the file.
///
///     0x93 "NUMPY" | major (1) | minor (1) | bytes of the header (2, later versions 4; little-endian) | header | values
///
/// The header is a Python dictionary: {'descr': '<i8', 'fortran_order': False, 'shape': (1000,), }.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

struct NpyNumbers {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // [shape], row-major
};

/// An array of one dimension, of int32 or int64 (little-endian). Errc::data names the file: not such a file, another type or number of
/// dimensions, a length that does not fit the header; io.
[[nodiscard]] core::Result<std::vector<std::int64_t>> read_npy_integers(const std::filesystem::path& path);

/// An array of float32 or float64 (little-endian, row-major). Errors as above.
[[nodiscard]] core::Result<NpyNumbers> read_npy_numbers(const std::filesystem::path& path);

}  // namespace troupe::data
