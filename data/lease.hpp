/// Who computes which samples. The book cuts every epoch's permutation into leases, hands them out, takes them back from
/// lost workers, and knows when an epoch is done. A pure state machine: no clock, no thread, no data set.
/// Owned by the coordinator; not thread-safe.
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
/// The tail of an epoch wraps around to its beginning, so every lease is whole.
struct Lease {
  std::uint64_t index = 0;    // of the run; unique; keys dropout
  std::uint32_t epoch = 0;    // from 0
  std::int64_t first = 0;     // position in the epoch's permutation
  std::int64_t count = 0;     // samples: the worker's batch
  double epoch_position = 0;  // epochs done when the lease (sync: its round) begins: what learning-rate schedules read
  bool operator==(const Lease&) const = default;
};

/// How an epoch is divided. `shares`: worker i always gets slice i of each global batch, so 1 × 128 and 2 × 64 see the same
/// samples at the same step; needs equal batches. `on_demand`: the next batch goes to whoever asks.
enum class Sharing : std::uint8_t { shares, on_demand };

/// What a lost worker had not finished.
struct LeftLease {
  std::uint64_t index = 0;   // as Lease's
  std::uint32_t epoch = 0;   // from 0
  std::int64_t first = 0;    // position in the epoch's permutation
  std::int64_t samples = 0;  // positions from `first` on that are nobody's now: fewer than Lease::count at a tail
  bool operator==(const LeftLease&) const = default;
};

struct LeaseOptions {
  std::int64_t epoch_size = 0;  // samples
  std::uint32_t epochs = 1;
  std::vector<std::int64_t> batches;  // per worker
  Sharing sharing = Sharing::on_demand;
  bool drop_tail = false;  // leave out the last, incomplete (global) batch instead of wrapping around
};

/// Worker ids are positions in LeaseOptions::batches. Cost of a call: O(log n) in the leases that are out.
class LeaseBook {
 public:
  /// Errc::config: no workers, a batch < 1, unequal batches with `shares`, drop_tail that leaves nothing.
  [[nodiscard]] static core::Result<LeaseBook> create(const LeaseOptions& options);

  /// The next lease of the current epoch for `worker`; nothing when none is left (until next_epoch()), while paused, or
  /// when the worker is lost. What lost workers left unfinished goes first, under new indexes and cut to the batch of
  /// whoever takes it; where that is larger, the lease reaches over positions that others have, as a tail wraps around.
  /// With different batches and drop_tail, the tail is dropped by the first worker whose batch it cannot fill.
  [[nodiscard]] std::optional<Lease> grant(std::uint32_t worker);
  /// Leases that the worker does not hold (it was declared lost meanwhile) are ignored.
  void done(std::uint32_t worker, std::uint64_t index);
  /// The worker is gone: what it had and did not finish will be granted again (on_demand), oldest first. With `shares` its
  /// slices of rounds that have begun are skipped, also those that it was not granted yet, and later rounds are cut for those who remain.
  /// Returns all of these, by index; nothing when it was lost before.
  std::vector<LeftLease> lost(std::uint32_t worker);
  /// A lost worker is back. With `shares` it takes part from the next round that begins.
  void joined(std::uint32_t worker);

  /// `shares`, and nobody was lost in this epoch: the first `rounds` rounds since the book was made or restored are done, whoever has
  /// said so, and no other has begun: what they had will be granted again, as if for the first time. Errc::internal: so many are not
  /// this epoch's, or have not been granted; nothing has changed.
  [[nodiscard]] core::Result<void> rewind(std::uint64_t rounds);

  /// No more grants. With `shares`, a round that has begun is still granted to its other workers: rounds stay whole.
  void pause();
  void resume();
  /// Nothing is granted and unfinished, and nothing would be granted now.
  [[nodiscard]] bool quiet() const;
  [[nodiscard]] bool epoch_done() const;
  /// REQUIRES epoch_done(). After the last epoch it does nothing.
  void next_epoch();
  [[nodiscard]] bool finished() const;  ///< the last epoch is done
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] double epoch_position() const;              ///< epochs done, from finished leases
  [[nodiscard]] std::uint64_t done_count() const noexcept;  ///< leases finished in the run
  /// For progress displays. Exact while the workers and their number stay; for unequal batches, by the mean batch.
  [[nodiscard]] std::uint64_t leases_per_epoch(std::uint32_t workers_alive) const;

  /// Everything, as JSON, when quiet(): what a checkpoint keeps. restore() refuses (Errc::config) a state of another data
  /// set or sharing, or of another batch with `shares`; another number of workers is fine, and with on_demand other batches
  /// are too. Text that is no such state is Errc::corrupt. After a failure the book is as it was.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] core::Result<void> restore(const std::string& state);

 private:
  struct Outstanding {
    Lease lease;
    std::uint32_t worker = 0;
    // Positions from lease.first on that count as this lease's: fewer than lease.count at a tail.
    std::int64_t covers = 0;
  };
  /// One global batch of `shares` that has begun and still waits for some of its members.
  struct Round {
    std::int64_t begin = 0;              // position of its first sample
    std::uint64_t first_index = 0;       // lease index of worker 0
    std::vector<std::uint32_t> members;  // ascending; member k has slice k
    std::set<std::uint32_t> waiting;     // live members without their lease
  };

  /// Where the epoch began in this session.
  struct Mark {
    std::uint64_t index = 0;
    std::int64_t position = 0;
    std::int64_t done_positions = 0;
    std::uint64_t done_count = 0;
  };

  explicit LeaseBook(LeaseOptions options);
  void open_epoch();
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
  // Of this epoch: first position → number of positions that nobody was granted; disjoint, neighbours merged.
  std::map<std::int64_t, std::int64_t> free_;
  std::vector<Round> rounds_;                         // shares: begun and incomplete, oldest first
  std::map<std::uint64_t, Outstanding> outstanding_;  // by lease index
  std::uint64_t next_index_ = 0;
  std::uint64_t done_count_ = 0;
  std::int64_t done_positions_ = 0;  // of this epoch
  std::uint64_t begin_index_ = 0;    // of this session's first lease
  Mark mark_;
  std::uint32_t epoch_ = 0;
  bool paused_ = false;
};

}  // namespace troupe::data
