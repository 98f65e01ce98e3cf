/// What the module troupe_hdf5.so does for this program: it finds arrays in HDF5 files, and hands out their chunks as they are stored. The
/// HDF5 library parses a file's metadata only; values are read and unpacked here (image_reader.hpp), where every length is known before.
/// Thread-safe: calls of the library are serialised by one mutex per process, since HDF5 is not built thread-safe everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/hdf5/stored_array.hpp"

namespace troupe::data {

inline constexpr std::int64_t kMostChunkBytes = 1LL << 28;  // unpacked
inline constexpr std::int64_t kMostChunks = 1LL << 20;      // of an array
inline constexpr std::int64_t kMostElements = 1LL << 48;    // of an array
inline constexpr std::size_t kMostDimensions = 4;

/// Index of a chunk's first element, by dimension of the array.
using ChunkOrigin = std::array<std::int64_t, kMostDimensions>;

/// A chunk as it is stored, filters and all.
struct StoredChunk {
  ChunkOrigin origin{};
  std::uint32_t skipped = 0;            // bit i: filter i was not applied to this chunk
  std::span<const std::uint8_t> bytes;  // valid during the call
};

class ArrayLibrary {
 public:
  virtual ~ArrayLibrary() = default;
  [[nodiscard]] virtual std::string version() const = 0;  ///< of HDF5
  /// The images, and labels if the file has them, by the names that hickle gives (docs/formats/data.md). The images have four dimensions and
  /// the labels one, none of them empty. Errc::data names the file: not HDF5, damaged, truncated, no such array, another element type, a
  /// link that is not hard, values outside the file or computed (external or virtual), an unknown filter, too large.
  [[nodiscard]] virtual core::Result<HickleArrays> find(const std::string& path) const = 0;
  /// Hands the chunks that begin at `origins` to `take`, in that order, with the mutex held: `take` must not call the library. Stops at the
  /// first error of `take`. Errc::data: the file no longer has `array`; a chunk that is missing, or longer than packing could make it.
  [[nodiscard]] virtual core::Result<void> chunks(
      const std::string& path, const StoredArray& array, std::span<const ChunkOrigin> origins,
      const std::function<core::Result<void>(const StoredChunk&)>& take) const = 0;
};

/// The module's exports: both sides must have been built from the same version of this interface.
inline constexpr int kArrayLibraryVersion = 1;
using ArrayLibraryVersion = int();
using MakeArrayLibrary = void(std::shared_ptr<const ArrayLibrary>& made);

/// The library, loaded at the first call. Errc::config: this build has none, or it cannot be loaded.
[[nodiscard]] core::Result<std::shared_ptr<const ArrayLibrary>> array_library();

}  // namespace troupe::data
