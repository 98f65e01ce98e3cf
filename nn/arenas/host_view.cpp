#include "nn/arenas/host_view.hpp"

namespace troupe::nn {

HostView::HostView(const core::Kernels& kernels, core::ConstSpan vector) : view_(vector) {
  if (kernels.space() != core::MemorySpace::device || vector.empty()) return;
  copy_.resize(vector.size());
  kernels.download(copy_, vector);
  view_ = copy_;
}

void read_canonical(const core::Kernels& kernels, const Layout& layout, core::ConstSpan arena, core::Span canonical) {
  layout.to_canonical(HostView(kernels, arena).get(), canonical);
}

void write_canonical(const core::Kernels& kernels, const Layout& layout, core::ConstSpan canonical, core::Span arena) {
  if (kernels.space() != core::MemorySpace::device || arena.empty()) return layout.from_canonical(canonical, arena);
  std::vector<float> host(arena.size());
  layout.from_canonical(canonical, host);
  kernels.upload(arena, host);
}

}  // namespace troupe::nn
