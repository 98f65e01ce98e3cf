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
  if (ends && memory_->kernels().space() != core::MemorySpace::device) {
    const auto x = memory_->view(ends->first, shards);
    const auto offset = static_cast<std::size_t>(x.data() - memory_->view(ends->first).data());
    if (gauge_.lacks(offset) || measurement_begins())
      measured(offset, x.size(),
               experiment::squared_distance(memory_->kernels(), x, memory_->view(ends->second, shards)));
  }
  memory_->run(call, shards);
}

/// Whether a server may find x in what this request lends: all of it travels there, or the server reads it in place. Not of vectors in
/// device memory.
bool WorkerBody::may_measure(const strategies::ShardRequest& request) const {
  using strategies::SlotKind, strategies::Transfer;
  const auto slot = request.slot.kind;
  if (memory_->kernels().space() == core::MemorySpace::device) return false;
  if (request.request.kind == Transfer::push_pull) return slot == SlotKind::params || slot == SlotKind::staged;
  const auto here = [this](std::uint32_t site) { return site == actors_.site; };
  return request.request.kind == Transfer::pull && slot == SlotKind::params && memory_->lends_in_place() &&
         std::ranges::all_of(actors_.server_sites, here);
}

bool WorkerBody::measurement_begins() {
  return gauge_.begin_if_due(compute_time_, host_->totals().local, host_->steps(),
                             memory_->replica().layout()->arena_floats());
}

void WorkerBody::measured(std::size_t offset, std::size_t count, double squared) {
  if (const auto distance = gauge_.add(offset, count, squared)) progress_.distance = *distance;
}

}  // namespace troupe::actors
