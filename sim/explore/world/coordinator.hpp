/// The coordinator's port in the schedule search: the rules are those of real runs (strategies/coordination/coordinator.hpp). A lost member
/// is noticed at once; the news of it takes its time over the network. One thread.
#pragma once

#include <optional>

#include "data/order/lease.hpp"
#include "sim/explore/world/words.hpp"
#include "strategies/coordination/coordinator.hpp"

namespace troupe::explore {

class VirtualRun;

class Coordinator final : public coordination::CoordinatorPort {
 public:
  Coordinator(VirtualRun& run, const Needs& needs);

  void begin() { machine_.begin({}); }
  /// The worker wants one more lease.
  void requested(WorkerId worker) { machine_.requested(worker, 1); }
  /// The worker has ended or passed over the lease, and `ended` steps since its host began.
  void done(WorkerId worker, const data::Lease& lease, Step ended);
  void lost(WorkerId worker);
  void arrived(WorkerId worker) { machine_.arrived(worker); }
  /// After every event: a task may have waited for it.
  void answer_if_done();

  [[nodiscard]] bool ended() const noexcept { return machine_.ended(); }
  [[nodiscard]] const data::LeaseScheduler& leases() const noexcept { return machine_.leases(); }

  // CoordinatorPort
  [[nodiscard]] Duration now() const override;
  void grant(WorkerId worker, std::span<const data::Lease> leases, bool after_pause) override;
  void perform(const coordination::Order& order) override;
  void write_checkpoint() override;
  void rewound(Step) override {}
  void membership_changed(const Membership& membership) override;
  void removed(WorkerId) override {}
  void lost(const coordination::Loss&) override {}
  void absent(WorkerId) override {}
  void disconnected(WorkerId, WorkerId) override {}
  void find_replacement(WorkerId) override {}  // a loss says whether and when a newcomer comes
  void warn(const std::string&) override {}
  void evaluate_beside() override {}  // schedules have no scores
  void judged(const coordination::EvaluationWatch::Verdict&) override {}
  void stops_early(coordination::EarlyStop) override {}  // schedules have neither limits nor targets
  void ended(const std::optional<core::Error>& error) override;

 private:
  void begin_task();
  [[nodiscard]] bool done(coordination::Task task) const;

  VirtualRun& run_;
  coordination::Coordinator machine_;
  coordination::Order order_;  // the latest
  bool waits_ = false;         // its task has begun
};

}  // namespace troupe::explore
