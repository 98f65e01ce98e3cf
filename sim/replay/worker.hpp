/// A worker in a replay: all ports of its WorkerHost, driven by the recorded events of the worker. One thread.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>

#include "experiment/batches/batch_memory.hpp"
#include "experiment/state/wire_bytes.hpp"
#include "sim/replay/segment.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::replay {

class ReplayWorker final : public strategies::WorkerPort,
                           public strategies::ShardPort,
                           public strategies::GroupPort,
                           public strategies::PeerPort,
                           public strategies::WorkerObserver {
 public:
  ReplayWorker(Segment& segment, strategies::WorkerId self, std::vector<WorkerItem> items,
               std::vector<data::Lease> leases, experiment::WorkerMemory memory, const experiment::StartState& start);

  /// Restores the state when a segment begins in the middle of a run; else the recording has Started. Errc::corrupt.
  [[nodiscard]] core::Result<void> take_up(const experiment::WorkerStart& start);
  /// Consumes the next item if its inputs are there. Throws Diverged, also for items that no run can have recorded.
  [[nodiscard]] bool advance();
  [[nodiscard]] bool at_end() const noexcept { return fed_ == items_.size(); }
  /// Makes advance() stop before `item`; without a call it stops at the end.
  void hold(std::size_t item) noexcept { limit_ = item; }
  [[nodiscard]] bool at_hold() const noexcept { return fed_ >= limit_; }
  /// Moves the hold behind one more step. False: it was at the end.
  [[nodiscard]] bool go_on();
  /// At its hold, for good: the rule takes the arrivals that would have waited for the end of the next step.
  void settle();
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] std::size_t fed() const noexcept { return fed_; }  ///< the item that waits_for() names
  [[nodiscard]] const std::vector<WorkerItem>& items() const noexcept { return items_; }
  /// The worker without which it cannot continue; nothing: not one alone, or it is not known.
  [[nodiscard]] std::optional<strategies::WorkerId> needs() const;
  /// What it waits for, for messages.
  [[nodiscard]] std::string waits_for() const;

  void answered(const strategies::ShardReply& reply);
  void peer_message(strategies::WorkerId from, double weight, experiment::BorrowedView vector);

  [[nodiscard]] experiment::WorkerMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const strategies::WorkerHost& host() const noexcept { return host_; }
  [[nodiscard]] experiment::WorkerProgress progress() const;
  [[nodiscard]] const EpochSums& epochs() const noexcept { return epochs_; }

  // strategies::WorkerPort
  [[nodiscard]] core::Duration now() const override { return core::Duration{0}; }
  void compute(strategies::Step step) override { wants_step_ = step; }
  void run(const strategies::KernelCall& call, strategies::Shards shards) override { memory_.run(call, shards); }
  void set_deadline(strategies::DeadlineId, core::Duration) override {}  // the recording has its moment
  // strategies::ShardPort
  [[nodiscard]] strategies::ShardId shards() const override { return segment_.servers(); }
  void send(const strategies::ShardRequest& request) override;
  // strategies::GroupPort
  void reduce(strategies::Step step, const strategies::Reduce& reduce) override;
  void broadcast(strategies::Step step, const strategies::Broadcast& broadcast) override;
  // strategies::PeerPort
  [[nodiscard]] bool send(const strategies::SendPeer& message) override;
  void release(strategies::Slot slot) override { memory_.dismount(slot); }
  // strategies::WorkerObserver
  void consumed(const strategies::WorkerEvent& event) override;
  void exchanged(const strategies::ExchangeRecord&) override {}

 private:
  struct Asked {
    strategies::Slot slot;
    strategies::ShardId parts_left = 0;
  };
  struct UnreadMessage {
    double weight = 0;
    experiment::BorrowedView vector;
  };

  [[nodiscard]] bool take_item();
  [[nodiscard]] bool feed(const strategies::Started& event);
  [[nodiscard]] bool feed(const strategies::BucketReady& event);
  [[nodiscard]] bool feed(const strategies::StepDone& event);
  [[nodiscard]] bool feed(const strategies::Stopped& event);
  [[nodiscard]] bool feed(const strategies::Replied& event);
  [[nodiscard]] bool feed(const strategies::ExchangeDone& event);
  [[nodiscard]] bool feed(const strategies::PeerMessageArrived& event);
  [[nodiscard]] bool feed(const strategies::SendSkipped& event);
  [[nodiscard]] bool feed(const strategies::MembershipChanged& event);
  [[nodiscard]] bool feed(const strategies::DeadlinePassed& event);
  [[nodiscard]] bool compute_step(bool tell_buckets);
  [[nodiscard]] core::OptimizerStep optimizer_step() const;
  [[nodiscard]] double told_position() const;
  [[nodiscard]] bool counts_steps() const;
  void collective(strategies::Step step, strategies::ExchangeId id, Collectives::Task task, strategies::Slot slot,
                  int bucket);
  /// "worker 1, after step 8, event 31".
  [[nodiscard]] std::string where(std::size_t item) const;
  [[noreturn]] void diverge(std::size_t item, const std::string& what) const;
  /// True if the recorded worker settled here: the rule takes an arrival now, not at the end of the step.
  [[nodiscard]] bool settles() const;
  void count_bytes(experiment::Purpose purpose, std::uint32_t member, std::uint64_t bytes);
  void require_computing(const char* what) const;

  Segment& segment_;
  strategies::WorkerId self_;
  std::vector<WorkerItem> items_;
  std::size_t limit_ = items_.size();
  std::size_t fed_ = 0;       // the next item to be fed
  std::size_t consumed_ = 0;  // the next item that the rule consumes: arrivals during a step wait for its end
  std::vector<data::Lease> leases_;
  std::size_t next_lease_ = 0;
  strategies::Step next_step_ = 0;  // step of leases_[next_lease_]
  strategies::Step wants_step_ = 0;
  bool computed_ = false;  // the current step is computed
  data::Lease lease_;
  experiment::WorkerMemory memory_;
  experiment::BatchMemory batch_;
  std::map<std::pair<strategies::ExchangeId, strategies::ShardId>, strategies::ShardReply> replies_;
  std::map<strategies::ExchangeId, Asked> asked_;
  std::map<strategies::ExchangeId, strategies::Slot> joined_;  // collectives
  std::map<strategies::WorkerId, std::deque<UnreadMessage>> peer_messages_;
  std::set<std::size_t> skips_told_;  // indices of items
  experiment::WorkerProgress progress_;
  EpochSums epochs_;
  std::uint64_t bad_gradients_ = 0;
  experiment::WireBytes wire_bytes_;
  strategies::WorkerHost host_;
};

}  // namespace troupe::replay
