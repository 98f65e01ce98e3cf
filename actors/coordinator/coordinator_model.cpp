// The model while training is paused: copies of shards and workers, and its evaluation.
#include <algorithm>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "core/buffer.hpp"
#include "experiment/bad_updates.hpp"
#include "nn/layout.hpp"
#include "nn/optimizer.hpp"

namespace troupe::actors {

using experiment::WeightedMean;
using strategies::ModelHome;
using strategies::Slot;

void CoordinatorBody::take_model(const Continuations& next) {
  const auto checked = [this, next] {
    model_ = canonical();
    if (core::host_kernels().all_finite(*model_)) return take_statistics(next.done);
    fail(core::Errc::diverged,
         fmt::format("diverged: the model's parameters are not finite any more after {} steps over all workers{}",
                     progress_.steps(),
                     experiment::against_divergence(setup_.settings->train.lr, setup_.graph->is_program())));
  };
  take_vector(setup_.needs.model_slot, {checked, next.interrupted});
}

/// The model's vector, or with kCenter what an average of it follows: copied into the arena.
void CoordinatorBody::take_vector(Slot slot, const Continuations& next) {
  if (setup_.needs.model == ModelHome::center) return snapshot_shards(slot, next.done);
  const Slot own = slot == strategies::kCenter ? strategies::kParams : slot;
  if (setup_.needs.model == ModelHome::weighted)
    return take_weighted(0, own, std::make_shared<WeightedMean>(), next.done);
  snapshot_worker(model_worker_, own, whole_arena(), next.done, next.interrupted);
}

/// Σ a_i x_i / Σ a_i, in rank order, over workers and their unread peer messages; at the end of a run none is unread. An average has no
/// part in peer messages.
void CoordinatorBody::take_weighted(std::uint32_t worker, Slot slot, const std::shared_ptr<WeightedMean>& mean,
                                    const Next& next) {
  if (worker == actors_.workers.size()) {
    mean->take(arena_->view());
    return next();
  }
  const Next following = [this, worker, slot, mean, next] { take_weighted(worker + 1, slot, mean, next); };
  const Next taken = [this, worker, slot, mean, following] {
    mean->add(arena_->view(), weight_);
    slot == strategies::kParams ? take_unread(worker, 0, mean, following) : following();
  };
  snapshot_worker(worker, slot, whole_arena(), taken, following);
}

/// These snapshots are not journalled: a replay does not have unread peer messages.
void CoordinatorBody::take_unread(std::uint32_t worker, std::size_t peer_message,
                                  const std::shared_ptr<WeightedMean>& mean, const Next& next) {
  if (!setup_.needs.peers || !is_member(worker) || peer_message == peer_messages_.of(worker).unread.size())
    return next();
  snapshot_worker(
      worker, peer_messages_.of(worker).slots.at(peer_message), whole_arena(),
      [this, worker, peer_message, mean, next] {
        mean->add(arena_->view(), peer_messages_.of(worker).unread.at(peer_message).weight);
        take_unread(worker, peer_message + 1, mean, next);
      },
      next, false);
}

/// Running statistics for evaluation: the mean over the workers, in rank order.
void CoordinatorBody::take_statistics(const Next& next) {
  if (setup_.graph->statistics().empty()) return next();
  const auto layout = nn::statistics_layout(*setup_.graph);
  auto arenas = std::make_shared<std::vector<core::Buffer>>();
  for (std::size_t worker = 0; worker < actors_.workers.size(); ++worker) {
    auto arena = core::Buffer::allocate(*setup_.memory, layout.arena_floats());
    if (!arena) return fail(arena.error().code, arena.error().message);
    arenas->push_back(std::move(*arena));
  }
  const Next all_here = [this, layout, arenas, next] {
    std::vector<core::ConstSpan> views;
    for (std::uint32_t worker = 0; worker < arenas->size(); ++worker)
      if (is_member(worker)) views.push_back((*arenas)[worker].view());
    // A copy of its own: an evaluation may still read the former one.
    statistics_ = std::make_shared<std::vector<float>>(experiment::mean_statistics(layout, views));
    next();
  };
  const auto left = std::make_shared<std::size_t>(actors_.workers.size());
  for (std::uint32_t worker = 0; worker < actors_.workers.size(); ++worker) {
    const Next here = [left, all_here] {
      if (--*left == 0) all_here();
    };
    snapshot_worker(worker, strategies::kStatistics, {(*arenas)[worker].view(), arenas}, here, here);
  }
}

std::shared_ptr<std::vector<float>> CoordinatorBody::canonical() const {
  auto canonical = std::make_shared<std::vector<float>>(setup_.layout->canonical_floats());
  setup_.layout->to_canonical(arena_->view(), *canonical);
  return canonical;
}

void CoordinatorBody::snapshot_shards(Slot slot, const Next& next) {
  const auto left = std::make_shared<std::size_t>(actors_.servers.size());
  shard_versions_.resize(actors_.servers.size());
  const auto whole = arena_->view();
  for (std::size_t shard = 0; shard < actors_.servers.size(); ++shard) {
    const auto slice = core::slice_of(whole.size(), shard, actors_.servers.size());
    ask<SnapshotTaken>(
        site_of_server(static_cast<std::uint32_t>(shard)), member_silence(), actors_.servers[shard],
        [this, shard, left, next](const SnapshotTaken& taken) {
          shard_versions_[shard] = taken.version;
          center_version_ = std::max(center_version_, taken.version);
          if (--*left == 0 && !machine_.ended()) next();
        },
        [this, shard](const caf::error& error) {
          fail(core::Errc::timeout, fmt::format("snapshot of server {}: {}", shard, self_->system().render(error)));
        },
        SnapshotOrder{++snapshots_, slot}, BorrowedView{whole.subspan(slice.offset, slice.count), arena_});
  }
}

/// Calls `absent` if the worker is no member, or is lost before it answers.
void CoordinatorBody::snapshot_worker(std::uint32_t worker, Slot slot, const BorrowedView& space, const Next& next,
                                      const Next& absent, bool journalled) {
  if (!is_member(worker)) return absent();
  ask<SnapshotTaken>(
      site_of(worker), member_silence(), actors_.workers[worker],
      [this, worker, next](const SnapshotTaken& taken) {
        weight_ = taken.weight;
        optimizer_steps_ = taken.optimizer_steps;
        if (worker == model_worker_) updates_ = taken.version;
        if (!machine_.ended()) next();
      },
      [this, worker, absent](const caf::error& error) { missed(worker, error, absent); },
      SnapshotOrder{++snapshots_, slot, journalled}, space);
}

}  // namespace troupe::actors
