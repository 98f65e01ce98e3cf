/// What one site does while the members of a run measure how they exchange best: all of them run the same reductions, one after the other,
/// on vectors of their own. An exchanger's, on its actor's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/protocol/site_messages.hpp"
#include "core/clock.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::actors {

class Measuring {
 public:
  using Done = std::function<void(core::Result<Measured>)>;
  /// What it works with; outlives it.
  struct Means {
    exchange::Courier& courier;
    const core::Kernels& kernels;
    core::Allocator& memory;
    const core::Clock& clock;
    exchange::Arenas* arenas = nullptr;  // for shm
    exchange::Scratch* scratch = nullptr;
  };

  /// Errors: those of the memory.
  [[nodiscard]] static core::Result<std::unique_ptr<Measuring>> create(const Means& means, exchange::Group group,
                                                                       MeasureOrder order, Done done);
  /// Begins the next reduction when the last one has ended; to be called whenever something may have, and nobody is in a call of the
  /// courier's. False: all is done, and said.
  [[nodiscard]] bool go_on();
  /// Somebody is lost, for whom others may wait that this one does not speak to: go_on() says so when nothing is lent any more.
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
  bool over_ = true;         // the last one has ended
  std::size_t next_ = 0;     // reduction, in the order of lengths, algorithms and rounds
  std::vector<double> all_;  // seconds of each
  std::optional<core::Error> error_;
};

}  // namespace troupe::actors
