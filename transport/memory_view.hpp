/// A range of memory that an endpoint sends from or receives into, and its memory space. Owns nothing: the caller that posts an
/// operation keeps the memory alive until that operation's completion.
#pragma once

#include <cstddef>
#include <span>

#include "core/buffer.hpp"
#include "core/kernels.hpp"

namespace troupe::transport {

struct MemoryView {
  std::byte* data = nullptr;
  std::size_t size = 0;  // bytes
  core::MemorySpace space = core::MemorySpace::host;
};

struct ConstMemoryView {
  ConstMemoryView() = default;
  ConstMemoryView(const std::byte* memory, std::size_t bytes,
                  core::MemorySpace where = core::MemorySpace::host) noexcept
      : data(memory), size(bytes), space(where) {}
  ConstMemoryView(const MemoryView& view) noexcept
      : data(view.data), size(view.size), space(view.space) {}  // NOLINT: as T* to const T*

  const std::byte* data = nullptr;
  std::size_t size = 0;  // bytes
  core::MemorySpace space = core::MemorySpace::host;
};

[[nodiscard]] inline MemoryView view_of(core::Span floats, core::MemorySpace space = core::MemorySpace::host) noexcept {
  return {reinterpret_cast<std::byte*>(floats.data()), floats.size_bytes(), space};
}
[[nodiscard]] inline ConstMemoryView view_of(core::ConstSpan floats,
                                             core::MemorySpace space = core::MemorySpace::host) noexcept {
  return {reinterpret_cast<const std::byte*>(floats.data()), floats.size_bytes(), space};
}

}  // namespace troupe::transport
