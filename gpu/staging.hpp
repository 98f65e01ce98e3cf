/// Copies between plain host memory and a device, through two pieces of pinned memory: one is copied by the device while the host fills or
/// empties the other. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "core/buffer.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

class Staging {
 public:
  /// `bytes`: of each piece, at most kLargestPiece; `device` outlives this object.
  [[nodiscard]] static core::Result<std::unique_ptr<Staging>> make(Device& device, std::size_t bytes);
  static constexpr std::size_t kLargestPiece = std::size_t{4} << 20;

  /// device ← host, behind the stream's work so far. `host` may change when this returns; the copy may not be done yet.
  [[nodiscard]] core::Result<void> upload(Stream& stream, void* device, const void* host, std::size_t bytes);
  /// host ← device, behind the stream's work so far. Waits until `host` has it all.
  [[nodiscard]] core::Result<void> download(Stream& stream, void* host, const void* device, std::size_t bytes);

  /// Waits until the event has happened.
  [[nodiscard]] core::Result<void> wait_for(Event& event);

 private:
  struct Piece {
    core::Buffer memory;
    std::unique_ptr<Event> copied;
    bool in_flight = false;
  };
  Staging() = default;
  /// The piece after the last one that was used, when the device has done with it.
  [[nodiscard]] core::Result<Piece*> next();

  std::size_t piece_bytes_ = 0;
  std::array<Piece, 2> pieces_;
  std::size_t used_ = 0;
  std::unique_ptr<Stream> waiting_;  // a stream that does nothing but wait for events, so that the host can wait for it
};

}  // namespace troupe::gpu
