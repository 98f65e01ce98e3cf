/// One journal segment, executed again: all hosts and halves in one thread, each consuming what it consumed in the recording, on
/// the real model, data and kernels. What a member consumes next decides what happens next, so any order that the recording
/// allows gives the same bits.
///
/// Members may be waiting for each other (an answer has not been given yet in this replay); the segment goes round until none can
/// go on. One thread.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiment/blueprint.hpp"
#include "experiment/state/shard_memory.hpp"
#include "experiment/state/start_state.hpp"
#include "experiment/state/worker_memory.hpp"
#include "nn/layout.hpp"
#include "sim/replay/collectives.hpp"
#include "sim/replay/recording.hpp"
#include "sim/replay/wire.hpp"

namespace troupe::replay {

/// The replay and the recording say different things: the message names member, event and both sides.
class Diverged : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SegmentOptions {
  nn::Backend* backend = nullptr;
  core::Allocator* memory = nullptr;
  const nn::Plan* plan = nullptr;                      // the recorded run's; null: the backend's own choices
  const experiment::ExchangePlan* exchange = nullptr;  // the recorded run's
  bool same_numbers = true;  // false: settings differ from the recorded ones, so only the schedule must be the same
};

class ReplayWorker;
class ReplayServer;

class Segment {
 public:
  /// Errors: those of compiling and cutting shards; Errc::corrupt for a start state that no member of `plan` ever said. All references outlive the segment.
  [[nodiscard]] static core::Result<std::unique_ptr<Segment>> open(const experiment::Blueprint& plan,
                                                                   const experiment::StartState& start,
                                                                   Recording recording, const SegmentOptions& options);
  ~Segment();

  /// Runs to the end of the recording, or to where a recording that was cut off says no more. Throws Diverged; errors are those of
  /// the data, and Errc::diverged when a loss is not finite.
  [[nodiscard]] core::Result<void> run();

  [[nodiscard]] const Recording& recording() const noexcept { return recording_; }
  [[nodiscard]] std::size_t consumed() const;                              ///< events and snapshots
  [[nodiscard]] std::uint64_t hashes() const noexcept { return hashes_; }  ///< snapshots that were the same
  /// The model as it is: canonical, found where the strategy says.
  [[nodiscard]] std::vector<float> model();
  /// The workers' mean of the statistics; canonical.
  [[nodiscard]] std::vector<float> statistics();
  /// As summed up by a run: per worker, without times.
  [[nodiscard]] std::vector<experiment::WorkerProgress> progress() const;

  // For the members.
  /// Null: it is no member when the segment begins.
  [[nodiscard]] ReplayWorker* worker(strategies::WorkerId worker) { return workers_.at(worker).get(); }
  [[nodiscard]] ReplayServer& server(strategies::ShardId shard) { return *servers_.at(shard); }
  [[nodiscard]] strategies::ShardId servers() const noexcept { return plan_.servers; }
  [[nodiscard]] Collectives& collectives() noexcept { return *collectives_; }
  [[nodiscard]] const Wire& wire() const noexcept { return *wire_; }
  /// Null: arenas travel as they are.
  [[nodiscard]] const std::shared_ptr<const exchange::Packing>& packing() const noexcept { return packing_; }
  [[nodiscard]] std::size_t arena_floats() const { return layout_->arena_floats(); }
  [[nodiscard]] const experiment::Blueprint& plan() const noexcept { return plan_; }
  [[nodiscard]] const SegmentOptions& options() const noexcept { return options_; }
  /// Who takes part when the segment begins.
  [[nodiscard]] const strategies::Membership& membership() const noexcept { return membership_; }
  [[nodiscard]] const core::Kernels& kernels() const { return options_.backend->kernels(); }
  /// Throws Diverged when `vector` is not what the recording saw. REQUIRES same_numbers: others have other hashes, and may have
  /// other vectors.
  void check(const experiment::SnapshotRecord& recorded, core::ConstSpan vector, const std::string& member,
             std::size_t event);
  void fail(core::Error error) { error_ = std::move(error); }

 private:
  Segment(const experiment::Blueprint& plan, Recording recording, const SegmentOptions& options);
  [[nodiscard]] core::Result<void> make(const experiment::StartState& start);
  [[nodiscard]] core::Result<void> connect();
  void explain_halt() const;
  [[nodiscard]] std::vector<ReplayWorker*> left() const;

  const experiment::Blueprint& plan_;
  SegmentOptions options_;
  Recording recording_;
  strategies::Membership membership_;
  std::optional<Wire> wire_;
  std::optional<Collectives> collectives_;
  std::vector<std::unique_ptr<ReplayWorker>> workers_;  // by rank; null for those who are no members
  std::vector<std::unique_ptr<ReplayServer>> servers_;
  std::shared_ptr<const nn::Layout> layout_;
  std::shared_ptr<const exchange::Packing> packing_;
  std::uint64_t hashes_ = 0;
  core::Error error_{core::Errc::internal, {}};
};

}  // namespace troupe::replay
