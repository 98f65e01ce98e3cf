#include "gpu/staging.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::gpu {

core::Result<std::unique_ptr<Staging>> Staging::make(Device& device, std::size_t bytes) {
  std::unique_ptr<Staging> staging(new Staging);
  const std::size_t floats = core::align_floats(std::clamp(bytes, core::kAlignment, kLargestPiece) / sizeof(float));
  staging->piece_bytes_ = floats * sizeof(float);
  for (Piece& piece : staging->pieces_) {
    auto memory = core::Buffer::allocate(device.pinned(), floats, "staging of copies to a device");
    if (!memory) return tl::unexpected(std::move(memory.error()));
    piece.memory = std::move(*memory);
    auto event = device.make_event();
    if (!event) return tl::unexpected(std::move(event.error()));
    piece.copied = std::move(*event);
  }
  auto stream = device.make_stream();
  if (!stream) return tl::unexpected(std::move(stream.error()));
  staging->waiting_ = std::move(*stream);
  return staging;
}

core::Result<void> Staging::wait_for(Event& event) {
  if (auto waits = waiting_->wait(event); !waits) return waits;
  return waiting_->synchronize();
}

core::Result<Staging::Piece*> Staging::next() {
  used_ = 1 - used_;
  Piece& piece = pieces_[used_];
  if (piece.in_flight)
    if (auto done = wait_for(*piece.copied); !done) return tl::unexpected(std::move(done.error()));
  piece.in_flight = false;
  return &piece;
}

core::Result<void> Staging::upload(Stream& stream, void* device, const void* host, std::size_t bytes) {
  for (std::size_t first = 0; first < bytes; first += piece_bytes_) {
    const std::size_t count = std::min(piece_bytes_, bytes - first);
    auto piece = next();
    if (!piece) return tl::unexpected(std::move(piece.error()));
    std::memcpy((*piece)->memory.data(), static_cast<const std::byte*>(host) + first, count);
    if (auto copied = stream.copy_to_device(static_cast<std::byte*>(device) + first, (*piece)->memory.data(), count);
        !copied)
      return copied;
    (*piece)->in_flight = true;
    if (auto recorded = stream.record(*(*piece)->copied); !recorded) return recorded;
  }
  return {};
}

core::Result<void> Staging::download(Stream& stream, void* host, const void* device, std::size_t bytes) {
  std::size_t emptied = 0;
  Piece* filling = nullptr;
  const auto empty = [&](Piece& piece) -> core::Result<void> {
    const std::size_t count = std::min(piece_bytes_, bytes - emptied);
    if (auto done = wait_for(*piece.copied); !done) return done;
    piece.in_flight = false;
    std::memcpy(static_cast<std::byte*>(host) + emptied, piece.memory.data(), count);
    emptied += count;
    return {};
  };
  for (std::size_t first = 0; first < bytes; first += piece_bytes_) {
    const std::size_t count = std::min(piece_bytes_, bytes - first);
    auto piece = next();
    if (!piece) return tl::unexpected(std::move(piece.error()));
    if (auto copied =
            stream.copy_to_host((*piece)->memory.data(), static_cast<const std::byte*>(device) + first, count);
        !copied)
      return copied;
    (*piece)->in_flight = true;
    if (auto recorded = stream.record(*(*piece)->copied); !recorded) return recorded;
    if (filling != nullptr)
      if (auto done = empty(*filling); !done) return done;
    filling = *piece;
  }
  if (filling != nullptr) return empty(*filling);
  return {};
}

}  // namespace troupe::gpu
