/// A tensor of a step that has no address yet. Compile time only. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "gpu/kernels/types.hpp"

namespace troupe::gpu {

enum class Storage : std::uint8_t {
  none,
  workspace,  ///< a slot of the program's memory
  parameter,  ///< the float32 master
  working,    ///< the parameter in the precision's type; the master itself in float32
  gradient,
  statistic,
};

/// Values of `shape`: NHWC, or with `is_plain` in canonical order, [batch, channels, height, width]. The two orders are the same for
/// vectors and for one channel.
struct Operand {
  Storage storage = Storage::none;
  int index = 0;           // slot, parameter or statistic
  std::size_t offset = 0;  // bytes from its start
  TensorShape shape{};
  Type type = Type::fp32;
  bool is_plain = false;

  [[nodiscard]] explicit operator bool() const noexcept { return storage != Storage::none; }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(shape.size()) * bytes_of(type); }
  [[nodiscard]] bool is_same_memory(const Operand& other) const noexcept {
    return storage == other.storage && index == other.index;
  }
  [[nodiscard]] bool has_one_order() const noexcept { return shape.channels == 1 || shape.height * shape.width == 1; }
  [[nodiscard]] Operand viewed_as(const TensorShape& other) const {
    Operand view = *this;
    view.shape = other;
    return view;
  }
};

/// The address of an operand, as any pointer.
struct Pointer {
  void* address = nullptr;
  template <class T>
  operator T*() const noexcept {  // NOLINT(google-explicit-constructor): kernels name the type
    return static_cast<T*>(address);
  }
};
/// Where operands are: null for none. Known when the workspace is planned.
using Addresses = std::function<Pointer(const Operand&)>;

}  // namespace troupe::gpu
