/// ArrayLibrary over the HDF5 C library. Only for sources of the module troupe_hdf5.so. Opens a file for each call, and keeps none open.
#pragma once

#include "data/hdf5/array_library.hpp"

namespace troupe::data {

class Hdf5Arrays final : public ArrayLibrary {
 public:
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] core::Result<HickleArrays> find(const std::string& path) const override;
  [[nodiscard]] core::Result<void> chunks(
      const std::string& path, const StoredArray& array, std::span<const ChunkOrigin> origins,
      const std::function<core::Result<void>(const StoredChunk&)>& take) const override;
};

}  // namespace troupe::data
