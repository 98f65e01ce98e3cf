/// How far a worker is from the centre when it meets it: the Euclidean norm of x − c, for the figures that users see. A measurement reads
/// vectors and writes none, so training computes the same bits with and without it. It is one pass over the vectors, too much for every
/// step: DistanceGauge decides when one is due.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/kernels.hpp"
#include "strategies/host/events.hpp"
#include "strategies/host/kernel_call.hpp"

namespace troupe::experiment {

/// Σ (a − b)² in float64, in chunks of fixed size and order: the result does not depend on threads. Both in host memory.
[[nodiscard]] double squared_distance(const core::Kernels& kernels, core::ConstSpan a, core::ConstSpan b);

/// Measures vectors in the memory of `kernels`, a device's or the host's. A device takes differences in scratch memory of at most kScratch
/// floats, which it gets from `memory` at the first measurement; the host needs none, and no `memory`. Both outlive this. One thread. A
/// device that fails throws core::KernelsFailed.
class DistanceMeter {
 public:
  static constexpr std::size_t kScratch = std::size_t{1} << 20;
  explicit DistanceMeter(const core::Kernels& kernels, core::Allocator* memory = nullptr)
      : kernels_(&kernels), memory_(memory) {}

  /// Σ (a − b)². None: the device has no memory for it.
  [[nodiscard]] std::optional<double> squared(core::ConstSpan a, core::ConstSpan b);
  /// The same, with b in plain host memory, aligned to core::kAlignment.
  [[nodiscard]] std::optional<double> squared_from_host(core::ConstSpan a, core::ConstSpan b);

 private:
  template <class Subtract>
  [[nodiscard]] std::optional<double> on_device(std::size_t floats, Subtract subtract);

  const core::Kernels* kernels_;
  core::Allocator* memory_;
  core::Buffer scratch_;
};

/// The slots that hold x and c just before a server runs `call` for a request of this kind: elastic averaging in any form, and the answer
/// to a pull that finds the worker's parameters in place. None: this call does not meet the worker's parameters.
using Ends = std::pair<strategies::Slot, strategies::Slot>;
[[nodiscard]] std::optional<Ends> ends_at_server(const strategies::KernelCall& call, strategies::Transfer kind);

/// The slots that hold x and c just before a worker runs `call` on its own vectors: the change since the last round (local SGD), or a
/// fetched centre that replaces x. A pull that writes x itself runs no call: WorkerMemory::take_back_measured().
[[nodiscard]] std::optional<Ends> ends_at_worker(const strategies::KernelCall& call);

/// One worker's measurements. A measurement may consist of parts, as the shards answer one by one. One thread.
class DistanceGauge {
 public:
  /// The share of its computing time that a worker may spend on measuring.
  static constexpr double kMostShare = 1e-3;
  /// How long a measurement takes, in times of a step's own kernels: an estimate for both passes over the vectors.
  static constexpr double kLength = 1.25;
  /// The same for a measurement that first copies x.
  static constexpr double kLengthWithCopy = 2.5;
  /// A measurement is taken for no shorter than this time per float, 8 bytes read: the optimizer may be a program's of the user's, and the worker's own
  /// kernels next to nothing. An assumption, on the safe side.
  static constexpr double kLeastPerFloat_s = 1e-9;

  /// Begins a measurement of `floats` in all, and forgets an incomplete one, if one is due: after `compute`, the worker's time of
  /// computing so far, of it `local` in its own kernels, over `steps` steps.
  [[nodiscard]] bool begin_if_due(core::Duration compute, core::Duration local, std::uint64_t steps, std::size_t floats,
                                  double length = kLength);
  /// Whether the measurement that has begun lacks the part at this place.
  [[nodiscard]] bool lacks(std::size_t offset) const;
  /// A part: Σ (x − c)² over [offset, offset + count) of the worker's vector. Complete: the distance; none when it is not finite.
  std::optional<double> add(std::size_t offset, std::size_t count, double squared);

 private:
  std::map<std::size_t, double> parts_;  // by place
  std::size_t missing_ = 0;              // floats
  core::Duration begun_at_{-1};          // of computing; below 0: never
};

}  // namespace troupe::experiment
