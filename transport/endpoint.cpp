#include "transport/endpoint.hpp"

#include <algorithm>

namespace troupe::transport {

bool Capabilities::takes(core::MemorySpace space) const noexcept {
  return std::ranges::find(spaces, space) != spaces.end();
}

}  // namespace troupe::transport
