/// The batches of a replica on their way to the device. Training replicas have two buffers there: the next batch is copied on a stream of its
/// own while a step computes. A captured step reads fixed memory; begin() fills that from a buffer by operations that are not captured, which
/// prepare the images on the way. So one capture serves both buffers, and no kernel of a step reads through a pointer in memory.
///
/// Events keep the order: a copy into a buffer waits until the last begin() has read it, and begin() waits for the copy. The host waits only to
/// write over what a copy may still read, which a batch that was prefetched and never computed leaves behind.
/// Thread rule: as the replica.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "gpu/compile.hpp"
#include "gpu/staging.hpp"

namespace troupe::gpu {

class InputBuffers {
 public:
  /// Device memory of the buffers of a replica: bytes if options.bytes, else float32; one buffer if not training.
  [[nodiscard]] static std::size_t bytes(const nn::Graph& graph, const nn::CompileOptions& options);
  [[nodiscard]] static core::Result<std::array<core::Buffer, 2>> allocate(Device& device, const nn::Graph& graph,
                                                                          const nn::CompileOptions& options);

  /// `device`, `staging` and `compiled`, with what allocate() made, outlive this object. Errors: those of memory, streams and events.
  [[nodiscard]] static core::Result<std::unique_ptr<InputBuffers>> make(Device& device, Staging& staging,
                                                                        Compiled& compiled, const nn::Graph& graph,
                                                                        const nn::CompileOptions& options);
  InputBuffers(const InputBuffers&) = delete;
  InputBuffers& operator=(const InputBuffers&) = delete;

  /// Throws std::invalid_argument for a batch of another form or size.
  void check(const nn::Batch& batch, std::int64_t samples) const;
  /// Replica::prefetch and Replica::discard.
  void prefetch(const nn::Batch& batch);
  void discard(const nn::Batch& batch);

  /// Program::images and Program::input ← the batch, with `samples` labels, as later work of `compute` sees them. REQUIRES check(). A batch
  /// that was not prefetched is copied now.
  [[nodiscard]] core::Result<void> begin(Stream& compute, const nn::Batch& batch, std::int64_t samples);
  /// The host has waited for `compute` since begin().
  void ended() noexcept;
  /// After ended() nothing. Else the pass was left: waits until nothing reads memory of a batch, and forgets this one.
  void leave(const nn::Batch& batch);

 private:
  /// Batches are the same if these are.
  struct Key {
    const void* images = nullptr;
    std::uint64_t lease = 0;
    std::int64_t first = 0;
    std::int64_t samples = 0;
    bool operator==(const Key&) const = default;
  };
  /// A buffer: what a step reads besides images, then cuts, in `head`; then floats or bytes in `pixels`.
  struct Slot {
    std::byte* head = nullptr;
    std::byte* pixels = nullptr;
    core::Buffer pinned;  // the host's head
    core::Buffer floats;  // of a replica for bytes that gets floats: made by the first such batch
    std::unique_ptr<Event> copied;
    std::unique_ptr<Event> read;
    std::optional<Key> batch;     // that is here, or on its way
    bool may_be_copying = false;  // the host has not waited for `copied`
    bool is_bytes = false;
  };
  explicit InputBuffers(Device& device, Staging& staging, const Program& program, const nn::Graph& graph,
                        const nn::CompileOptions& options);
  [[nodiscard]] static Key key_of(const nn::Batch& batch, std::int64_t samples) noexcept;
  [[nodiscard]] Slot* find(const Key& batch) noexcept;
  [[nodiscard]] Slot* free_slot() noexcept;
  /// Copies the batch into the slot, behind the last begin() that read it.
  [[nodiscard]] core::Result<void> copy(Slot& slot, const nn::Batch& batch, std::int64_t samples);
  [[nodiscard]] core::Result<void> make_floats(Slot& slot);
  [[nodiscard]] core::Result<void> wait_for_copy(Slot& slot);
  [[nodiscard]] core::Result<void> prepare(Stream& compute, const Slot& slot);
  [[nodiscard]] core::Result<void> prepare_bytes(Stream& compute, const Slot& slot);

  Device& device_;
  Staging& staging_;
  const Program& program_;
  nn::Shape input_;
  std::int64_t batch_;
  std::optional<nn::Shape> source_;  // of bytes
  std::array<Slot, 2> slots_;
  std::size_t count_ = 1;  // of them
  std::size_t oldest_ = 0;
  bool is_open_ = false;            // between begin() and ended()
  core::Buffer constants_;          // of bytes: bias, then scale
  core::Buffer upright_;            // of bytes for plain images: NHWC
  std::unique_ptr<Stream> loader_;  // last: it waits for its work before memory goes
};

}  // namespace troupe::gpu
