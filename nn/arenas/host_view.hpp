/// Arenas as the host sees them, wherever their memory is: in host memory directly, on a device through a copy. Thread rule: that of the
/// kernels. Errors: those of the kernels (core::KernelsFailed).
#pragma once

#include <vector>

#include "core/kernels.hpp"
#include "nn/layout.hpp"

namespace troupe::nn {

/// The numbers of a vector, for the host to read: the vector itself where the host can read it, otherwise a copy of now. The vector must
/// outlive it.
class HostView {
 public:
  HostView(const core::Kernels& kernels, core::ConstSpan vector);
  HostView(HostView&&) noexcept = default;  // get() stays as it is
  HostView& operator=(HostView&&) noexcept = default;
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  [[nodiscard]] core::ConstSpan get() const noexcept { return view_; }

 private:
  std::vector<float> copy_;
  core::ConstSpan view_;
};

/// Layout::to_canonical and from_canonical of an arena in the memory of `kernels`; `canonical` is host memory.
void read_canonical(const core::Kernels& kernels, const Layout& layout, core::ConstSpan arena, core::Span canonical);
void write_canonical(const core::Kernels& kernels, const Layout& layout, core::ConstSpan canonical, core::Span arena);

}  // namespace troupe::nn
