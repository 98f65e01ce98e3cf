/// Which worker computes which samples. The scheduler cuts every epoch's permutation into leases, grants them, takes them back from
/// lost workers, and knows when an epoch is done. A pure state machine: no clock, no thread, no data set. Owned by the coordinator;
/// not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

/// One batch of one epoch's permutation for one worker: samples permutation[(first + i) % epoch_size], i in [0, count).
/// The tail of an epoch wraps around to its beginning, so every lease is full.
struct Lease {
  std::uint64_t index = 0;    // of the run; unique; the key of dropout
  std::uint32_t epoch = 0;    // from 0
  std::int64_t first = 0;     // position in the epoch's permutation
  std::int64_t count = 0;     // samples: the worker's batch
  double epoch_position = 0;  // epochs done when the lease (equal: its round) begins; learning-rate schedules use it
  double lr_factor = 1;       // what a plateau schedule has made of the learning rate (set_lr_factor)
  bool operator==(const Lease&) const = default;
};

/// How an epoch is divided. `equal`: worker i always gets slice i of each global batch, so 1 × 128 and 2 × 64 use the same samples
/// at the same step; needs equal batches. `on_demand`: the worker that asks gets the next batch.
enum class Sharing : std::uint8_t { equal, on_demand };

/// An unfinished lease of a lost worker.
struct LeftLease {
  std::uint64_t index = 0;   // Lease::index
  std::uint32_t epoch = 0;   // from 0
  std::int64_t first = 0;    // position in the epoch's permutation
  std::int64_t samples = 0;  // positions from `first` on that are free again: fewer than Lease::count at a tail
  bool operator==(const LeftLease&) const = default;
};

/// Where an epoch's samples are: size = done + given_up + leased + free + omitted.
struct LeaseAccounts {
  std::uint32_t epoch = 0;
  std::int64_t size = 0;
  std::int64_t done = 0;
  std::int64_t given_up = 0;  // finished without having been computed
  std::int64_t leased = 0;
  std::int64_t free = 0;      // to be granted
  std::int64_t omitted = 0;   // not in this epoch: a dropped tail, slices of lost workers
  std::int64_t run_done = 0;  // of all epochs
  std::int64_t run_given_up = 0;
};

struct LeaseOptions {
  std::int64_t epoch_size = 0;  // samples
  std::uint32_t epochs = 1;
  std::vector<std::int64_t> batches;  // per worker
  Sharing sharing = Sharing::on_demand;
  bool drop_tail = false;  // leave out the last, incomplete (global) batch instead of wrapping around
};

/// Worker ids are indices into LeaseOptions::batches. Cost of a call: O(log n) in the number of granted, unfinished leases.
class LeaseScheduler {
 public:
  /// Errc::config: no workers, a batch < 1, unequal batches with `equal`, drop_tail that leaves no batch.
  [[nodiscard]] static core::Result<LeaseScheduler> create(const LeaseOptions& options);

  /// The next lease of the current epoch for `worker`; none if all are granted (until next_epoch()), while paused, or if the worker
  /// is lost. Unfinished leases of lost workers go first, with new indexes and the batch size of the new worker. If its batch is
  /// larger, the lease also covers positions of other leases, as a tail wraps around. With different batches and drop_tail, the
  /// first worker whose batch the tail cannot fill drops it.
  [[nodiscard]] std::optional<Lease> grant(std::uint32_t worker);
  /// Ignores leases that the worker does not hold, because it was declared lost meanwhile.
  void done(std::uint32_t worker, std::uint64_t index) { finish(worker, index, true); }
  /// As done(), of a lease that its worker passed over: it was not computed.
  void give_up(std::uint32_t worker, std::uint64_t index) { finish(worker, index, false); }
  /// Declares the worker lost. Its unfinished leases are granted again (on_demand), oldest first. With `equal`, its slices of
  /// begun rounds are skipped, including slices not granted yet, and later rounds are divided among the other workers. Returns all
  /// of these leases, by index; none if it was lost before.
  std::vector<LeftLease> lost(std::uint32_t worker);
  /// The lost worker is back. With `equal` it takes part from the next round that begins.
  void joined(std::uint32_t worker);

  /// REQUIRES `equal` and no loss in this epoch. Sets the state in which exactly the first `rounds` rounds since create() or
  /// restore() are done, with or without done() calls, and no other round has begun: later leases are granted again under the same
  /// indexes. Errc::internal: these rounds are not all of this epoch and granted; the state is unchanged.
  [[nodiscard]] core::Result<void> rewind(std::uint64_t rounds);

  /// Leases granted from now on have this factor. REQUIRES quiet(): the leases of a round have the same.
  void set_lr_factor(double factor) noexcept { lr_factor_ = factor; }
  [[nodiscard]] double lr_factor() const noexcept { return lr_factor_; }

  /// Stops granting. With `equal`, a round that has begun is still granted to its other workers, so that rounds are complete.
  void pause();
  void resume();
  /// True if no granted lease is unfinished and none would be granted now.
  [[nodiscard]] bool quiet() const;
  /// Leases of begun rounds that their workers have not been granted yet: a pause does not hold them back. Without `equal`: 0.
  [[nodiscard]] std::uint64_t owed() const;
  [[nodiscard]] bool epoch_done() const;
  /// REQUIRES epoch_done(). After the last epoch it does nothing.
  void next_epoch();
  [[nodiscard]] bool finished() const;  ///< the last epoch is done
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] double epoch_position() const;              ///< epochs done, from finished leases
  [[nodiscard]] std::uint64_t done_count() const noexcept;  ///< leases finished in the run
  /// O(unfinished leases).
  [[nodiscard]] LeaseAccounts accounts() const;
  /// For progress displays. Exact while the set of workers does not change; for unequal batches, from the mean batch.
  [[nodiscard]] std::uint64_t leases_per_epoch(std::uint32_t workers_alive) const;

  /// The state as JSON, for a checkpoint. state() REQUIRES quiet(). restore() refuses (Errc::config) a state of another data set or
  /// sharing, or of another batch with `equal`; another number of workers is allowed, and with on_demand other batches too.
  /// Errc::corrupt: the text is no such state. After an error the scheduler is unchanged.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] core::Result<void> restore(const std::string& state);

 private:
  struct Outstanding {
    Lease lease;
    std::uint32_t worker = 0;
    // Positions from lease.first on that count for this lease: fewer than lease.count at a tail.
    std::int64_t covers = 0;
  };
  /// One global batch of `equal` that has begun and that some members have not been granted yet.
  struct Round {
    std::int64_t begin = 0;              // position of its first sample
    std::uint64_t first_index = 0;       // lease index of worker 0
    std::vector<std::uint32_t> members;  // ascending; member k has slice k
    std::set<std::uint32_t> waiting;     // live members without their lease
  };

  /// The state at which the epoch began in this session.
  struct Mark {
    std::uint64_t index = 0;
    std::int64_t position = 0;
    std::int64_t done_positions = 0;
    std::uint64_t done_count = 0;
  };

  explicit LeaseScheduler(LeaseOptions options);
  void open_epoch();
  void finish(std::uint32_t worker, std::uint64_t index, bool computed);
  void mark_epoch();
  void release(std::int64_t first, std::int64_t count);
  void drop_unfillable_tail();
  [[nodiscard]] std::vector<std::uint32_t> live_workers() const;
  [[nodiscard]] bool may_begin_round() const;
  [[nodiscard]] bool would_grant() const;
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> slice_of(const Round& round, std::uint32_t worker) const;
  [[nodiscard]] std::optional<Lease> grant_share(std::uint32_t worker);
  [[nodiscard]] std::optional<Lease> grant_on_demand(std::uint32_t worker);
  Lease hand_out(std::uint32_t worker, std::uint64_t index, std::int64_t first, std::int64_t covers,
                 std::int64_t round_begin);

  LeaseOptions options_;
  std::vector<bool> alive_;  // by worker
  // Free positions of this epoch: first position → number of positions; disjoint, neighbours merged.
  std::map<std::int64_t, std::int64_t> free_;
  std::vector<Round> rounds_;                         // equal: begun and incomplete, oldest first
  std::map<std::uint64_t, Outstanding> outstanding_;  // by lease index
  std::uint64_t next_index_ = 0;
  std::uint64_t done_count_ = 0;
  std::int64_t done_positions_ = 0;  // of this epoch, given up or not
  std::int64_t given_up_ = 0;        // of them
  std::int64_t run_done_ = 0;        // as done_positions_, of all epochs
  std::int64_t run_given_up_ = 0;
  std::uint64_t begin_index_ = 0;  // of this session's first lease
  Mark mark_;
  std::uint32_t epoch_ = 0;
  double lr_factor_ = 1;
  bool paused_ = false;
};

}  // namespace troupe::data
