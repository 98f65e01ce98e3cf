/// One site's part in measuring the reduction algorithms of a run: all sites run the same reductions in the same order, on vectors of
/// their own. Owned by an exchanger, on its actor's thread. Memory: one vector of the greatest length.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/protocol/site_messages.hpp"
#include "core/clock.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::actors {

/// When the coordinator gives up a site that has neither answered nor reported its own silence: after all of the order's bytes over the
/// slowest link that a run can use, 64 KiB/s, and kMeasureSilence. At most 30 days.
[[nodiscard]] core::Duration measure_deadline(const MeasureOrder& order);

class Measuring {
 public:
  using Done = std::function<void(core::Result<Measured>)>;
  /// The exchanger's objects; they outlive the measurement.
  struct Means {
    exchange::OperationQueue& operations;
    const core::Kernels& kernels;
    core::Allocator& memory;
    const core::Clock& clock;
    exchange::Arenas* arenas = nullptr;  // for shm
    exchange::Scratch* scratch = nullptr;
  };

  /// Errors: those of allocating the vector.
  [[nodiscard]] static core::Result<std::unique_ptr<Measuring>> create(const Means& means, exchange::Group group,
                                                                       MeasureOrder order, Done done);
  /// Begins the next reduction when the last one has ended. Call it after each completion, outside the callbacks of the operation queue.
  /// False: all is done, and `done` was called.
  [[nodiscard]] bool go_on();
  /// A peer is lost; other sites may wait for it even if this one does not. go_on() reports `why` when no memory is lent any more.
  void give_up(const core::Error& why);

 private:
  Measuring(const Means& means, exchange::Group group, MeasureOrder order, core::Buffer vector, Done done);
  void ended(const core::Result<void>& result);

  const Means means_;
  const exchange::Group group_;
  const MeasureOrder order_;
  core::Buffer vector_;
  Done done_;
  std::unique_ptr<exchange::Collective> running_;
  core::Duration began_{0};
  bool over_ = true;         // the last reduction has ended
  std::size_t next_ = 0;     // next reduction, in the order of lengths, algorithms and rounds
  std::vector<double> all_;  // seconds of each reduction
  std::optional<core::Error> error_;
};

}  // namespace troupe::actors
