/// Collectives in one process (transport/exchange/reduce.hpp): each member lends its slice, computes its own share over all lent slices,
/// and continues when all shares are done. This class is the state of one member; its worker sends the messages. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "core/clock.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::actors {

class Rendezvous {
 public:
  using Key = std::pair<strategies::Step, strategies::ExchangeId>;
  /// What to compute: the mean or sum over the group, or a broadcast of root's vector.
  struct Task {
    strategies::Group group;  // ascending, this member included
    std::optional<strategies::WorkerId> root;
    strategies::ReduceOp op = strategies::ReduceOp::mean;
    strategies::Slot slot;
    strategies::Rounding rounding = strategies::Rounding::none;
  };

  explicit Rendezvous(strategies::WorkerId self) noexcept : self_(self) {}

  /// This member's own part.
  void begin(Key key, Task task, BorrowedView slice, core::Duration now);
  /// Another member's part; may arrive before begin().
  void offered(Key key, strategies::WorkerId from, BorrowedView slice, core::Duration now);
  /// Another member's share of the work is done.
  void share_done(Key key, strategies::WorkerId from);

  /// Computes this member's share when all parts of `key` are here, once. True: the share was computed in this call.
  [[nodiscard]] bool work(Key key, const core::Kernels& kernels);

  /// The members of `key`. REQUIRES begin(key).
  [[nodiscard]] const strategies::Group& group(Key key) const { return entries_.at(key).task->group; }

  struct Finished {
    strategies::ExchangeId exchange = 0;
    strategies::Slot slot;
    core::Duration waited{0};       // from this member's part to the last part
    strategies::WorkerId last = 0;  // the worker of the last part
  };
  /// The result of `key` when all shares are done; removes its entry.
  [[nodiscard]] std::optional<Finished> finish(Key key);

  /// The time of the oldest begin() that is not finished; none: all are. For watchdogs.
  [[nodiscard]] std::optional<core::Duration> oldest() const;
  /// Members whose part or share is missing in the unfinished collective with the lowest key.
  [[nodiscard]] std::vector<strategies::WorkerId> missing() const;

 private:
  struct Entry {
    std::optional<Task> task;
    std::map<strategies::WorkerId, BorrowedView> parts;
    std::vector<strategies::WorkerId> done;
    core::Duration began{0};
    core::Duration last_part{0};
    strategies::WorkerId last_worker = 0;
    bool worked = false;
  };
  strategies::WorkerId self_;
  std::map<Key, Entry> entries_;
};

}  // namespace troupe::actors
