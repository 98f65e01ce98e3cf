/// Executes one journal segment again: all hosts and rules in one thread, each with the events that it consumed in the recording, on the
/// real model, data and kernels. A member's next recorded event decides what happens next, so every order that the recording allows gives
/// the same bits.
///
/// A member may have to wait for another (for an answer that this replay has not produced yet). The segment visits all members in turn
/// until none can continue. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiment/run_spec.hpp"
#include "experiment/state/shard_memory.hpp"
#include "experiment/state/start_state.hpp"
#include "experiment/state/worker_memory.hpp"
#include "nn/layout.hpp"
#include "sim/replay/collectives.hpp"
#include "sim/replay/describe.hpp"
#include "sim/replay/recording.hpp"
#include "sim/replay/result/replay_totals.hpp"
#include "sim/replay/result/verification.hpp"
#include "sim/replay/wire.hpp"

namespace troupe::replay {

/// The replay differs from the recording; the message names member, event and both values.
class Diverged : public std::runtime_error {
 public:
  Diverged(const std::string& what, bool server, std::uint32_t member, std::size_t event)
      : std::runtime_error(what), server_(server), member_(member), event_(event) {}
  [[nodiscard]] std::string member() const { return member_name(server_, member_); }
  [[nodiscard]] std::size_t event() const noexcept { return event_; }  ///< of the member, with its hashes, from 0

 private:
  bool server_;
  std::uint32_t member_;
  std::size_t event_;
};

struct SegmentOptions {
  nn::Backend* backend = nullptr;
  core::Allocator* memory = nullptr;                   // of the host: for the vectors of a run over several sites
  const nn::Plan* plan = nullptr;                      // of the recorded run; null: the backend chooses
  const experiment::ExchangePlan* exchange = nullptr;  // of the recorded run
  int arithmetic = experiment::kArithmetic;            // of the recorded run
  bool same_numbers = true;  // false: other settings than recorded; only the schedule must be the same
  std::function<void(std::size_t consumed)> progress{};  // called often
};

/// Workers whose programs run on from one segment into the next. A program has state that no start state contains (its optimizer's, random
/// numbers, values of more than 32 bits); so it must not be restarted where the run did not restart it.
using RunningPrograms = std::map<strategies::WorkerId, experiment::WorkerMemory>;

class ReplayWorker;
class ReplayServer;

class Segment {
 public:
  /// `running`: of the segment before, if this one continues it. Errors: those of compiling and cutting shards; Errc::corrupt for a start
  /// state that the rules of `spec` reject. All references outlive the segment.
  [[nodiscard]] static core::Result<std::unique_ptr<Segment>> open(const experiment::RunSpec& spec,
                                                                   const experiment::StartState& start,
                                                                   Recording recording, const SegmentOptions& options,
                                                                   RunningPrograms running = {});
  ~Segment();

  /// Runs to the end of the recording, or to the point where a cut-off recording ends. Throws Diverged. Errors: those of the data;
  /// Errc::diverged when a loss is not finite.
  [[nodiscard]] core::Result<void> run();
  /// The same until all workers that are not held before their first item have come to their holds, and `server` to its end. A held worker
  /// goes on, step by step, where one of these cannot continue without it: no more than needed, so this is one state.
  [[nodiscard]] core::Result<void> run_held(const ReplayServer* server);

  [[nodiscard]] const Recording& recording() const noexcept { return recording_; }
  [[nodiscard]] std::size_t consumed() const;  ///< events and snapshots
  /// The same by member: "worker1", "server0".
  [[nodiscard]] std::map<std::string, std::uint64_t> consumed_by_member() const;
  /// What the replay has found, as far as it went. `bytes` of the segment's file, `events` of its recording; `diverged`: what ended the
  /// replay, or null.
  [[nodiscard]] SegmentVerification verification(int number, std::uint64_t bytes, std::size_t events,
                                                 const Diverged* diverged) const;
  [[nodiscard]] std::uint64_t hashes() const noexcept { return hashes_; }  ///< snapshots that matched
  /// The current model in canonical layout, from where the strategy keeps it.
  [[nodiscard]] std::vector<float> model();
  /// The workers' mean of the statistics, in canonical layout.
  [[nodiscard]] std::vector<float> statistics();
  /// The programs of workers that were members until the end of a complete segment, and reached it. Call it once, after run(), as the last call.
  [[nodiscard]] RunningPrograms take_running();
  /// Per worker as in a run's summary, without times.
  [[nodiscard]] std::vector<experiment::WorkerProgress> progress() const;
  [[nodiscard]] EpochSums epochs() const;  ///< over all workers

  // For the members.
  /// Null: not a member when the segment begins.
  [[nodiscard]] ReplayWorker* worker(strategies::WorkerId worker) { return workers_.at(worker).get(); }
  [[nodiscard]] ReplayServer& server(strategies::ShardId shard) { return *servers_.at(shard); }
  [[nodiscard]] strategies::ShardId servers() const noexcept { return spec_.servers; }
  [[nodiscard]] Collectives& collectives() noexcept { return *collectives_; }
  [[nodiscard]] const Wire& wire() const noexcept { return *wire_; }
  /// Null: arenas are sent unpacked.
  [[nodiscard]] const std::shared_ptr<const exchange::Packing>& packing() const noexcept { return packing_; }
  [[nodiscard]] std::size_t arena_floats() const { return layout_->arena_floats(); }
  [[nodiscard]] const experiment::RunSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const SegmentOptions& options() const noexcept { return options_; }
  /// The members when the segment begins.
  [[nodiscard]] const strategies::Membership& membership() const noexcept { return membership_; }
  /// The memory of all vectors: a device's if the backend has one device, else the host's. The numbers do not depend on it.
  [[nodiscard]] core::Allocator& memory() const;
  [[nodiscard]] const core::Kernels& kernels() const { return options_.backend->kernels_for(memory()); }
  /// Throws Diverged when `vector` differs from the recorded hash; `where` names the member and its event `event`. REQUIRES same_numbers:
  /// other settings have other hashes, and may have other vectors.
  void check(const experiment::SnapshotRecord& recorded, core::ConstSpan vector, const std::string& where,
             std::size_t event);
  void fail(core::Error error) { error_ = std::move(error); }

 private:
  Segment(const experiment::RunSpec& spec, Recording recording, const SegmentOptions& options);
  [[nodiscard]] core::Result<void> make(const experiment::StartState& start, RunningPrograms running);
  [[nodiscard]] core::Result<experiment::WorkerMemory> memory_of(strategies::WorkerId worker,
                                                                 const experiment::StartState& start,
                                                                 const nn::BytePreparation* bytes);
  [[nodiscard]] core::Result<void> connect();
  [[nodiscard]] core::Result<void> advance_all();
  [[nodiscard]] bool release(const ReplayServer* server);
  void explain_halt() const;
  [[nodiscard]] std::vector<ReplayWorker*> left() const;

  const experiment::RunSpec& spec_;
  SegmentOptions options_;
  Recording recording_;
  strategies::Membership membership_;
  std::optional<Wire> wire_;
  std::optional<Collectives> collectives_;
  std::vector<std::unique_ptr<ReplayWorker>> workers_;  // by rank; null for non-members
  std::vector<std::unique_ptr<ReplayServer>> servers_;
  std::shared_ptr<const nn::Layout> layout_;
  std::shared_ptr<const exchange::Packing> packing_;
  std::uint64_t hashes_ = 0;
  std::size_t advanced_ = 0;  // items, for progress
  core::Error error_{core::Errc::internal, {}};
};

}  // namespace troupe::replay
