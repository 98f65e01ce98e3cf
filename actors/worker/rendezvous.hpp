/// Collectives in one process, as transport/exchange/reduce.hpp describes them: every member lends its slice, each works on its own
/// share of all of them, and nobody goes on before all shares are done. This is the book-keeping of one member; the messages
/// are its worker's. Not thread-safe.
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
  /// Which collective: the mean or sum over the group, or root's vector for everyone.
  struct Task {
    strategies::Group group;  // ascending, this member included
    std::optional<strategies::WorkerId> root;
    strategies::ReduceOp op = strategies::ReduceOp::mean;
    strategies::Slot slot;
    strategies::Rounding rounding = strategies::Rounding::none;
  };

  explicit Rendezvous(strategies::WorkerId self) noexcept : self_(self) {}

  /// This member's own part.
  void begin(Key key, Task task, Lent slice, core::Duration now);
  /// Another member's part; may come before begin().
  void offered(Key key, strategies::WorkerId from, Lent slice, core::Duration now);
  /// Another member's share of the work is done.
  void share_done(Key key, strategies::WorkerId from);

  /// All parts of `key` are here and this member has not done its share yet: then the share is done now.
  [[nodiscard]] bool work(Key key, const core::Kernels& kernels);

  /// Who takes part in `key`; REQUIRES begin(key).
  [[nodiscard]] const strategies::Group& group(Key key) const { return entries_.at(key).task->group; }

  struct Finished {
    strategies::ExchangeId exchange = 0;
    strategies::Slot slot;
    core::Duration waited{0};       // from this member's part to the last one's
    strategies::WorkerId last = 0;  // whose part that was
  };
  /// The collective `key`, once all shares are done; it is forgotten then.
  [[nodiscard]] std::optional<Finished> finish(Key key);

  /// The oldest begin() that is not finished; nothing when there is none. For watchdogs.
  [[nodiscard]] std::optional<core::Duration> oldest() const;
  /// Members whose part or share of the oldest collective is missing.
  [[nodiscard]] std::vector<strategies::WorkerId> missing() const;

 private:
  struct Entry {
    std::optional<Task> task;
    std::map<strategies::WorkerId, Lent> parts;
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
