// What a worker measures of its exchanges: bytes, and how far it is from the centre when it meets it.
#include <algorithm>

#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker_body.hpp"

namespace troupe::actors {

void WorkerBody::count_bytes(experiment::Purpose purpose, std::uint32_t member, std::uint64_t bytes) {
  progress_.bytes += bytes;
  experiment::count(progress_.traffic, {purpose, member, bytes});
}

void WorkerBody::run(const strategies::KernelCall& call, strategies::Shards shards) {
  const auto ends = experiment::ends_at_worker(call);
  if (ends) {
    const auto x = memory_->view(ends->first, shards);
    const auto offset = static_cast<std::size_t>(x.data() - memory_->view(ends->first).data());
    if (gauge_.lacks(offset) || measurement_begins(experiment::DistanceGauge::kLength))
      measured(offset, x.size(), memory_->squared_distance(ends->first, ends->second, shards));
  }
  memory_->run(call, shards);
}

/// Servers find x in what such a request lends: all of it travels there, or they read it in place. A pull over sites writes x itself, and
/// only the worker knows what it was.
WorkerBody::MeasuredBy WorkerBody::measured_by(const strategies::ShardRequest& request) const {
  using strategies::SlotKind, strategies::Transfer;
  const auto slot = request.slot.kind;
  if (request.request.kind == Transfer::push_pull && (slot == SlotKind::params || slot == SlotKind::staged))
    return MeasuredBy::servers;
  if (request.request.kind != Transfer::pull || slot != SlotKind::params) return MeasuredBy::nobody;
  const auto here = [this](std::uint32_t site) { return site == actors_.site; };
  const bool in_place = memory_->lends_in_place() && std::ranges::all_of(actors_.server_sites, here);
  return in_place ? MeasuredBy::servers : MeasuredBy::worker;
}

/// Who measures this exchange, which begins with this request; nobody when no measurement is due.
WorkerBody::MeasuredBy WorkerBody::begin_measurement(const strategies::ShardRequest& request) {
  using experiment::DistanceGauge;
  const auto by = measured_by(request);
  const bool copies = by == MeasuredBy::worker && memory_->lends_in_place();
  const bool begins =
      by != MeasuredBy::nobody && measurement_begins(copies ? DistanceGauge::kLengthWithCopy : DistanceGauge::kLength);
  return begins ? by : MeasuredBy::nobody;
}

bool WorkerBody::measurement_begins(double length) {
  return gauge_.begin_if_due(compute_time_, host_->totals().local, host_->steps(),
                             memory_->replica().layout()->arena_floats(), length);
}

void WorkerBody::measured(std::size_t offset, std::size_t count, std::optional<double> squared) {
  if (!squared) return;
  if (const auto distance = gauge_.add(offset, count, *squared)) progress_.distance = *distance;
}

}  // namespace troupe::actors
