// Checkpoints: their contents, and the order to write them.
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "nn/layout.hpp"
#include "nn/optimizer.hpp"

namespace troupe::actors {

using strategies::ModelHome;
using strategies::Slot;
using strategies::WorkerState;

/// Adds the bookkeeping: how far the run is.
void CoordinatorBody::complete(Checkpoint& checkpoint) const {
  checkpoint.step = progress_.steps();
  checkpoint.graph = setup_.graph;
  checkpoint.strategy = setup_.settings->strategy;
  checkpoint.optimizer = setup_.settings->train.optimizer;
  checkpoint.server_optimizer = setup_.needs.server_state_of;
  checkpoint.data = setup_.data;
  checkpoint.validation = setup_.validation;
  checkpoint.statistics = *statistics_;
  checkpoint.leases = setup_.leases->state();
  checkpoint.config = setup_.settings->config.to_toml();
  checkpoint.totals = progress_.totals(machine_.trained_s(), ledger().wall_s);
  // A resumed run repeats the evaluation of this model if it has not ended, and reports its epoch then.
  if (evaluates_ && evaluation_->epoch && machine_.watch().awaits(setup_.leases->done_count()))
    checkpoint.totals.epoch = evaluation_->open;
  checkpoint.totals.test = {result_.summary.test_loss, result_.summary.test_accuracy, result_.summary.test_top5};
  const auto& validation = result_.summary.validation;
  checkpoint.totals.validation = {validation.loss, validation.accuracy, validation.top5};
  checkpoint.totals.watched = machine_.watch().state();
  checkpoint.totals.center_version = center_version_;
  checkpoint.totals.worker_steps = machine_.steps().all();
}

std::shared_ptr<Checkpoint> CoordinatorBody::begin_checkpoint() const {
  auto checkpoint = std::make_shared<Checkpoint>();
  complete(*checkpoint);
  return checkpoint;
}

/// A checkpoint that cannot be written is a warning: the old one stays good and training goes on.
void CoordinatorBody::write_checkpoint() {
  complete(*checkpoint_);
  checkpoint_->vectors.emplace("", model_);
  const auto step = checkpoint_->step;
  // A request that came too late for this one's states gets a checkpoint of its own.
  const bool lacks_states = setup_.graph->is_program() && machine_.admits() && checkpoint_->own_states.empty();
  const bool requested = !lacks_states && std::exchange(save_requested_, false);
  if (save_requested_) machine_.checkpoint_requested();
  tell_ledger();  // a session that resumes from this checkpoint finds its samples in the last line, whenever this one is killed
  ask<CheckpointWritten>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this, requested](const CheckpointWritten& written) {
        if (machine_.ended()) return;
        if (written.error.empty()) {
          newest_checkpoint_ = written.path;
          if (requested) note(Note::Level::info, fmt::format("checkpoint {} is saved, as requested", written.path));
          return machine_.written({});
        }
        warn("no checkpoint: " + written.error);
        machine_.written(core::fail(written.code, written.error));
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "checkpoint: " + self_->system().render(error)); },
      CheckpointOrder{step}, CheckpointPayload{std::exchange(checkpoint_, nullptr)});
}

void CoordinatorBody::rewound(strategies::Step steps) {
  progress_.level(steps, static_cast<std::uint64_t>(setup_.settings->batch(0)));
}

/// Prefixes of the tensors that a checkpoint keeps besides the model.
std::vector<std::string> CoordinatorBody::state_prefixes() const {
  std::vector<std::string> prefixes;
  for (int k = 0; k < core::state_slots(nn::optimizer_kind(setup_.settings->train)); ++k) {
    if (setup_.needs.worker_state == WorkerState::replicated) prefixes.push_back(optimizer_prefix(-1, k));
    if (setup_.needs.worker_state == WorkerState::per_worker) {
      for (int worker = 0; worker < static_cast<int>(setup_.started.workers); ++worker)
        prefixes.push_back(optimizer_prefix(worker, k));
    }
  }
  for (int k = 0; k < setup_.needs.server_states && !setup_.needs.server_state_of.empty(); ++k)
    prefixes.push_back(server_state_prefix(k));
  if (setup_.needs.averages()) prefixes.emplace_back(experiment::kCenterPrefix);
  return prefixes;
}

void CoordinatorBody::take_state(std::vector<std::string> prefixes, const std::shared_ptr<Checkpoint>& into,
                                 const Next& next) {
  if (prefixes.empty()) return next();
  const auto prefix = prefixes.back();
  prefixes.pop_back();
  const Next kept = [this, prefix, prefixes, into, next] {
    into->vectors.emplace(prefix, canonical());
    take_state(prefixes, into, next);
  };
  const Next own = [this, prefix, into, kept] {
    into->optimizer_steps[prefix] = optimizer_steps_;
    kept();
  };
  // A lost worker's state is lost: it begins anew when the run is resumed.
  const Next without = [this, prefixes, into, next] { take_state(prefixes, into, next); };
  for (std::uint8_t k = 0; k < 2; ++k) {
    const Slot state{strategies::SlotKind::velocity, k};
    for (std::uint32_t worker = 0; worker < setup_.started.workers; ++worker) {
      if (prefix == optimizer_prefix(static_cast<int>(worker), k))
        return snapshot_worker(worker, state, whole_arena(), own, without);
    }
    if (prefix == optimizer_prefix(-1, k)) return snapshot_worker(model_worker_, state, whole_arena(), own, without);
  }
  if (prefix == experiment::kCenterPrefix) return take_vector(strategies::kCenter, {kept, without});
  for (std::uint8_t k = 0; k < setup_.needs.server_states; ++k) {
    if (prefix == server_state_prefix(k)) return snapshot_shards(strategies::server_state(k), kept);
  }
}

/// All that a checkpoint has beside the model, which `worker` has.
void CoordinatorBody::take_states(std::uint32_t worker, const Next& next) {
  model_worker_ = worker;
  checkpoint_ = std::make_shared<Checkpoint>();
  take_state(state_prefixes(), checkpoint_, [this, next] { take_own_states(0, checkpoint_, next); });
}

/// A newcomer needs none of them, and without periodic checkpoints its own is the only reason for this one: all others wait for it.
bool CoordinatorBody::checkpoint_has_own_states() const {
  const bool for_newcomer = machine_.admits() && setup_.settings->checkpoint == coordination::CheckpointPeriod{};
  return setup_.graph->is_program() && (save_requested_ || !for_newcomer);
}

/// What programs keep of their optimizers, one worker after the other. In an emergency only the worker whose model is taken is known to be
/// where that model is.
void CoordinatorBody::take_own_states(std::uint32_t worker, const std::shared_ptr<Checkpoint>& into, const Next& next) {
  if (!checkpoint_has_own_states() || worker == actors_.workers.size()) return next();
  const Next following = [this, worker, into, next] { take_own_states(worker + 1, into, next); };
  if (machine_.in_emergency() && worker != model_worker_) return following();
  const auto state = std::make_shared<std::vector<std::byte>>();
  const Next whole = [this, worker, state, into, following] {
    into->own_states.insert_or_assign(worker, state);
    own_states_.insert_or_assign(worker, state);
    following();
  };
  take_own_state(worker, state, whole, following);
}

/// In pieces as large as the arena. Calls `absent` as snapshot_worker().
void CoordinatorBody::take_own_state(std::uint32_t worker, const std::shared_ptr<std::vector<std::byte>>& into,
                                     const Next& next, const Next& absent) {
  if (!is_member(worker)) return absent();
  const std::chrono::duration<double> silence(setup_.settings->model.silence_s);  // of the program, which saves
  ask<SnapshotTaken>(
      site_of(worker), member_silence() + std::chrono::duration_cast<core::Duration>(silence), actors_.workers[worker],
      [this, worker, into, next, absent](const SnapshotTaken& taken) {
        if (machine_.ended()) return;
        const auto piece = std::as_bytes(arena_->view());
        const auto left = taken.bytes - std::min<std::uint64_t>(taken.bytes, into->size());
        const auto count = std::min<std::uint64_t>(left, piece.size());
        into->insert(into->end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
        if (left == count) return next();
        piece.empty() ? absent() : take_own_state(worker, into, next, absent);
      },
      [this, worker, absent](const caf::error& error) { missed(worker, error, absent); },
      SnapshotOrder{++snapshots_, {}, false, true, into->size()}, whole_arena());
}

}  // namespace troupe::actors
