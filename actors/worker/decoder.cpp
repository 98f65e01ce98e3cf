#include "actors/worker/decoder.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "actors/protocol/supervision.hpp"
#include "experiment/batches/batch_memory.hpp"

namespace troupe::actors {

DecodingThread::DecodingThread(core::Cpus cpus, const core::Clock& clock) : cpus_(std::move(cpus)), clock_(clock) {}

void DecodingThread::stay_off_workers() {
  if (!cpus_.empty())
    if (auto bound = core::ThreadBinding::bind_this_thread(std::exchange(cpus_, {}))) binding_ = std::move(*bound);
  if (binding_ && binding_->release_if_crowded(clock_.now())) binding_.reset();
}

namespace {

core::Result<std::int64_t> build_bytes(const data::BatchBuilder& builder, const data::Lease& lease,
                                       const BorrowedBatch& space) {
  std::vector<data::View> views(space.cuts.size());
  auto built = builder.build_bytes(lease, space.bytes, views, space.labels);
  std::ranges::transform(views, space.cuts.begin(), experiment::cut_of);
  return built;
}

}  // namespace

Decoded decode(const data::BatchBuilder& builder, const DecodeOrder& order, const BorrowedBatch& space) {
  const auto failed = [&](const core::Error& error) { return Decoded{order.buffer, error.message, error.code, 0}; };
  try {
    const auto built = space.bytes.empty() ? builder.build(order.lease, space.images, space.labels)
                                           : build_bytes(builder, order.lease, space);
    if (!built) return failed(built.error());
    return {.buffer = order.buffer, .replaced = static_cast<std::uint32_t>(*built)};
  } catch (...) {
    return failed(failure_of("decoding", std::current_exception()));  // an exception would reach the loader as a text
  }
}

DecoderActor::behavior_type decoder(DecoderActor::pointer /*self*/, const DecoderSetup& setup) {
  const auto thread = std::make_shared<DecodingThread>(setup.cpus, *setup.clock);
  return {[builder = setup.builder, thread](const DecodeOrder& order, const BorrowedBatch& space) {
    thread->stay_off_workers();
    return decode(*builder, order, space);
  }};
}

std::vector<DecoderActor> spawn_decoders(caf::actor_system& system, const DecoderSetup& setup, std::int64_t threads) {
  std::vector<DecoderActor> decoders;
  if (threads == 1 && !setup.builder->dataset().streamed()) return decoders;
  for (std::int64_t k = 0; k < threads; ++k) decoders.push_back(system.spawn<caf::detached>(decoder, setup));
  return decoders;
}

}  // namespace troupe::actors
