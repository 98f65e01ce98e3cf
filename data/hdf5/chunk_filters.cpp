#include "data/hdf5/chunk_filters.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

namespace troupe::data {
namespace {

core::Result<void> not_unpacked(const char* packing, std::size_t stored, std::size_t wanted) {
  return core::fail(core::Errc::data,
                    fmt::format("damaged: {} bytes do not unpack ({}) to the {} of a chunk", stored, packing, wanted));
}

bool unpack_gzip(std::span<const std::uint8_t> stored, std::span<std::uint8_t> out) {
  uLongf written = out.size();
  return uncompress(out.data(), &written, stored.data(), stored.size()) == Z_OK && written == out.size();
}

}  // namespace

bool unpack_lzf(std::span<const std::uint8_t> stored, std::span<std::uint8_t> out) noexcept {
  constexpr std::size_t kRuns = 32, kLongCopy = 7, kLeastCopy = 2;
  std::size_t from = 0, to = 0;
  while (from < stored.size()) {
    const std::size_t control = stored[from++];
    if (control < kRuns) {
      const std::size_t run = control + 1;
      if (run > stored.size() - from || run > out.size() - to) return false;
      std::memcpy(out.data() + to, stored.data() + from, run);
      from += run;
      to += run;
      continue;
    }
    std::size_t length = control >> 5;
    if (length == kLongCopy) {
      if (from == stored.size()) return false;
      length += stored[from++];
    }
    length += kLeastCopy;
    if (from == stored.size()) return false;
    const std::size_t back = ((control & 31) << 8 | stored[from++]) + 1;
    if (back > to || length > out.size() - to) return false;
    for (const std::size_t end = to + length; to < end; ++to) out[to] = out[to - back];  // may overlap: it repeats
  }
  return to == out.size();
}

core::Result<void> undo_filters(std::span<const ChunkFilter> filters, std::uint32_t skipped,
                                std::span<const std::uint8_t> stored, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if ((skipped >> i & 1) != 0 || filters[i] == ChunkFilter::shuffle) continue;
    const bool gzip = filters[i] == ChunkFilter::gzip;
    if (gzip ? unpack_gzip(stored, out) : unpack_lzf(stored, out)) return {};
    return not_unpacked(gzip ? "gzip" : "lzf", stored.size(), out.size());
  }
  if (stored.size() != out.size()) return not_unpacked("as it is", stored.size(), out.size());
  std::ranges::copy(stored, out.begin());
  return {};
}

}  // namespace troupe::data
