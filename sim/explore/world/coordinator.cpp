#include "sim/explore/world/coordinator.hpp"

#include <stdexcept>
#include <utility>

#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {

using coordination::Task;

namespace {

/// From its copy to the disk. Training goes on meanwhile.
constexpr Duration kWriting = std::chrono::milliseconds(2);
/// A newcomer's site loads the checkpoint.
constexpr Duration kLoading = std::chrono::microseconds(300);

coordination::CoordinatorOptions options_of(const VirtualRun& run, const Needs& needs) {
  coordination::CoordinatorOptions options;
  options.needs = needs;
  options.workers = run.options().workers;
  options.epochs = run.options().epochs;
  options.resumed = true;  // no checkpoint at the start: nothing goes back to it
  return options;
}

/// A lease is one sample. Its index is that of the gradient's noise.
std::shared_ptr<data::LeaseScheduler> leases_of(const VirtualRunOptions& options, const Needs& needs) {
  if (options.steps % options.epochs != 0) throw std::invalid_argument("steps must be a multiple of epochs");
  const data::LeaseOptions leases{
      .epoch_size = static_cast<std::int64_t>(options.steps / options.epochs * options.workers),
      .epochs = options.epochs,
      .batches = std::vector<std::int64_t>(options.workers, 1),
      .sharing = needs.in_step ? data::Sharing::equal : data::Sharing::on_demand};
  return std::make_shared<data::LeaseScheduler>(data::LeaseScheduler::create(leases).value());
}

}  // namespace

Coordinator::Coordinator(VirtualRun& run, const Needs& needs)
    : run_(run), machine_(*this, options_of(run, needs), leases_of(run.options(), needs)) {}

Duration Coordinator::now() const { return run_.now(); }

void Coordinator::done(WorkerId worker, const data::Lease& lease, Step ended) {
  machine_.progressed(worker, ended, {&lease.index, 1});
}

void Coordinator::lost(WorkerId worker) { machine_.lost(worker, "it was lost"); }

void Coordinator::grant(WorkerId worker, std::span<const data::Lease> leases, bool) {
  for (const auto& lease : leases) run_.worker(worker).granted(lease);
}

// ---- tasks

/// An event, not a direct call: the worker that reports is inside its host's call.
void Coordinator::perform(const coordination::Order& order) {
  order_ = order;
  waits_ = false;
  const auto begins = order.task == Task::prepare_newcomer ? kLoading : Duration{0};
  run_.queue().after(begins, [this, number = order.number] {
    if (machine_.awaits(number)) begin_task();
  });
}

void Coordinator::begin_task() {
  waits_ = true;
  if (order_.task == Task::dismiss_workers) run_.dismiss();
  if (order_.task == Task::find_newest) throw Violation("a member of a group was lost: such runs are not searched");
}

void Coordinator::answer_if_done() {
  if (!waits_ || !machine_.awaits(order_.number) || !done(order_.task)) return;
  waits_ = false;
  if (order_.task == Task::begin_newcomer) run_.enter(order_.worker, machine_.steps().of(order_.worker));
  machine_.answered({.number = order_.number, .newest = {}});
}

bool Coordinator::done(Task task) const {
  switch (task) {
    case Task::dismiss_workers: return run_.all_at_rest();
    case Task::settle_workers: return run_.all_stand();
    case Task::await_peer_messages: return run_.peer_messages_in_flight() == 0;
    // A shard that did not know the newcomer would let others run ahead of it.
    case Task::begin_newcomer: return run_.shards_know_members();
    default: return true;  // copies of the model take no time
  }
}

void Coordinator::write_checkpoint() {
  run_.queue().after(kWriting, [this] { machine_.written({}); });
}

// ---- members

void Coordinator::membership_changed(const Membership& membership) { run_.announce(membership); }

void Coordinator::ended(const std::optional<core::Error>& error) {
  if (error && machine_.members().count() > 0) throw Violation("the run ended: " + error->message);
  if (!error) return;
  auto nobody = machine_.members().membership();
  ++nobody.epoch;
  run_.announce(nobody);  // the shards forget the last one's requests
}

}  // namespace troupe::explore
