/// Names of what a thread does, for profilers: NVTX, which costs nothing without one. Nothing where its header is not installed.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace troupe::gpu {

inline void push_profile_range([[maybe_unused]] const char* name) noexcept {
#if __has_include(<nvtx3/nvToolsExt.h>)
  (void)nvtxRangePushA(name);
#endif
}
inline void pop_profile_range() noexcept {
#if __has_include(<nvtx3/nvToolsExt.h>)
  (void)nvtxRangePop();
#endif
}

}  // namespace troupe::gpu
