/// Unpacks a chunk of an HDF5 file. Pure functions; nothing is written beyond `out`, whatever the bytes say.
#pragma once

#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "data/hdf5/stored_array.hpp"

namespace troupe::data {

/// Undoes `filters` in reverse, but those whose bit in `skipped` is set. Errc::data, without a place: `stored` does not unpack to exactly
/// out.size() bytes.
[[nodiscard]] core::Result<void> undo_filters(std::span<const ChunkFilter> filters, std::uint32_t skipped,
                                              std::span<const std::uint8_t> stored, std::span<std::uint8_t> out);

/// LZF (liblzf's format): a byte below 32 is a run of so many bytes + 1; another one is a copy of (byte >> 5) + 2 bytes (7: the next byte is
/// added to the 7) from ((byte & 31) << 8 | next byte) + 1 back. False: `stored` does not unpack to exactly `out`.
[[nodiscard]] bool unpack_lzf(std::span<const std::uint8_t> stored, std::span<std::uint8_t> out) noexcept;

}  // namespace troupe::data
