#include "transport/common/wire_hash.hpp"

#ifdef TROUPE_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace troupe::transport {

std::uint64_t wire_hash(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace troupe::transport
