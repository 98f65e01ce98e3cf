#include "actors/worker/decoder.hpp"

#include <utility>

namespace troupe::actors {

Decoded decode(const data::BatchBuilder& builder, const DecodeOrder& order, const BorrowedBatch& space) {
  const auto built = builder.build(order.lease, space.images, space.labels);
  return {order.buffer, built ? std::string{} : built.error().message, built ? static_cast<std::uint32_t>(*built) : 0};
}

DecoderActor::behavior_type decoder(DecoderActor::pointer /*self*/, std::shared_ptr<const data::BatchBuilder> builder) {
  return {[builder = std::move(builder)](const DecodeOrder& order, const BorrowedBatch& space) {
    return decode(*builder, order, space);
  }};
}

std::vector<DecoderActor> spawn_decoders(caf::actor_system& system,
                                         const std::shared_ptr<const data::BatchBuilder>& builder,
                                         std::int64_t threads) {
  std::vector<DecoderActor> decoders;
  if (threads == 1 && !builder->dataset().streamed()) return decoders;
  for (std::int64_t k = 0; k < threads; ++k) decoders.push_back(system.spawn<caf::detached>(decoder, builder));
  return decoders;
}

}  // namespace troupe::actors
