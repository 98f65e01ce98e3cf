/// Launches of checksums. Thread rule: pure functions.
#pragma once

#include "gpu/kernels/bodies/checksum.hpp"
#include "gpu/kernels/kernel.hpp"
#include "gpu/kernels/launch/choose.hpp"

namespace troupe::gpu::launches {

template <class Word, class Launcher>
void checksum(const Xxh3& k, Launcher& launcher) {
  const std::int64_t count = Xxh3Shape::whole_blocks(k.bytes);
  const auto* data = of<unsigned char>(k.data);
  blocks(launcher, Xxh3BlocksBody<Word>{data, k.scratch, count, {}});
  blocks(launcher, Xxh3TotalBody<Word>{data, k.bytes, k.scratch, count, k.result, {}});
}
template <class Launcher>
void launch(const Xxh3& k, Launcher& launcher) {
  const auto address = reinterpret_cast<std::uintptr_t>(k.data);
  if (address % 8 == 0) return checksum<std::uint64_t>(k, launcher);
  if (address % 4 == 0) return checksum<std::uint32_t>(k, launcher);
  if (address % 2 == 0) return checksum<std::uint16_t>(k, launcher);
  checksum<std::uint8_t>(k, launcher);
}

}  // namespace troupe::gpu::launches
