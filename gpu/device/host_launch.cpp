#include "gpu/device/host_launch.hpp"

#include <cstring>
#include <memory>
#include <type_traits>

#include "gpu/kernels/launch/dispatch.hpp"

namespace troupe::gpu::host {
namespace {

constexpr std::size_t kMostShared = 48 << 10;     // what every device has for a block
constexpr std::size_t kMostParameters = 4 << 10;  // of a kernel
constexpr int kUnwritten = 0xA5;

class HostLauncher {
 public:
  explicit HostLauncher(ThreadOrder order) noexcept : order_(order) {}

  template <class Body>
  void elements(const Body& body, std::int64_t count) {
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= kMostParameters);
    for_each(count, [&](std::int64_t index) { body(index); });
  }
  template <class Body>
  void blocks(const Body& body) {
    using Shared = typename Body::Shared;
    static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= kMostParameters);
    static_assert(std::is_trivial_v<Shared>);  // shared memory has no initial values
    static_assert(sizeof(Shared) <= kMostShared);
    alignas(Shared) static thread_local unsigned char memory[sizeof(Shared)];
    auto& shared = *reinterpret_cast<Shared*>(memory);
    for_each(body.blocks(), [&](std::int64_t block) {
      std::memset(memory, kUnwritten, sizeof memory);
      for (int phase = 0; phase < Body::kPhases; ++phase)
        for_each(Body::kThreads,
                 [&](std::int64_t thread) { body.phase(phase, block, static_cast<int>(thread), shared); });
    });
  }

 private:
  template <class Use>
  void for_each(std::int64_t count, const Use& use) const {
    if (order_ == ThreadOrder::ascending)
      for (std::int64_t i = 0; i < count; ++i) use(i);
    else
      for (std::int64_t i = count; i > 0; --i) use(i - 1);
  }

  ThreadOrder order_;
};

}  // namespace

void execute(const Kernel& kernel, ThreadOrder order) { dispatch(kernel, HostLauncher(order)); }

}  // namespace troupe::gpu::host
