/// What a communication library (UCX, MPI) has to offer so that FabricEndpoint can make an Endpoint of it: small ordered
/// frames, and bulk transfers straight between memories that both sides have named. Libraries are loaded when used:
/// a module (troupe_ucx.so, troupe_mpi.so) holds one Fabric and nothing else of ours.
///
/// Thread rule: one call at a time (the endpoint's mutex), but for wait() and wake(). No call blocks on a peer. Nothing
/// is reported from within a call other than progress() and shutdown().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/memory_view.hpp"

namespace troupe::transport {

/// A way to one remote fabric, as its opener sees it. Never reused.
enum class WireId : std::uint64_t {};

/// One bulk transfer, named by whoever asked for it.
enum class TransferId : std::uint64_t {};

/// Who hears of what happened.
class FabricEvents {
 public:
  /// A frame from anybody: who sent it stands in the frame, or it is not to be believed.
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  /// The memory is free. `whole`: all bytes are where they belong (receive), or have been handed over (send).
  virtual void on_transferred(TransferId transfer, bool whole) = 0;
  /// A piece of it has moved, and more are to come.
  virtual void on_piece(TransferId transfer) = 0;
  /// Nothing moves on this wire any more. It is still to be closed.
  virtual void on_wire_lost(WireId wire, std::string why) = 0;

 protected:
  ~FabricEvents() = default;
};

/// A library's own reduction (transport/native_reduction.hpp).
class NativeSum {
 public:
  [[nodiscard]] virtual std::size_t members() const noexcept = 0;
  virtual void sum(core::Span vector, TransferId transfer) = 0;

 protected:
  ~NativeSum() = default;
};

struct FabricOptions {
  std::string transports{};  // ucx: UCX_TLS for this endpoint, "tcp,self"; empty: what the environment says
  std::size_t piece = 0;     // mpi: bytes of a transfer, or floats of a sum, that one call of MPI moves
};

class Fabric {
 public:
  /// Of a frame: fits into one packet of every library, so frames of one wire arrive in order.
  static constexpr std::size_t kMaxFrameBytes = 6 << 10;
  /// Of a transfer: it is cut into pieces of so many bytes at most, so that one can see it move over a slow link.
  static constexpr std::size_t kMaxPieceBytes = 4 << 20;

  virtual ~Fabric() = default;

  /// Printable, without '/', unique for all times. At most 2 KiB.
  [[nodiscard]] virtual const std::string& address() const noexcept = 0;
  [[nodiscard]] virtual std::size_t max_transfer_bytes() const noexcept = 0;
  /// Errc::usage when the address makes no sense; Errc::peer_lost when it is known at once that nobody is there.
  [[nodiscard]] virtual core::Result<WireId> open(std::string_view address) = 0;
  /// Frames of one wire arrive in the order they were sent, or the wire is lost. Copied. No effect on a lost wire.
  virtual void send_frame(WireId wire, std::span<const std::byte> frame) = 0;

  /// Posts memory for a transfer that the peer will begin, and returns the channel by which the peer finds it.
  [[nodiscard]] virtual std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) = 0;
  /// To be called only when the peer has posted its memory under `channel`.
  virtual void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) = 0;

  /// Sends what frames there are and gives the wire up; what is left after a short grace time ends by force. Its
  /// transfers are reported as they end.
  virtual void close(WireId wire) = 0;

  /// Does what can be done now and reports it. False: there was nothing to do.
  virtual bool progress(FabricEvents& events) = 0;
  /// Before wait(). False: something happened meanwhile, call progress() again.
  [[nodiscard]] virtual bool prepare_to_wait() = 0;
  /// Sleeps until there may be something for progress(). Called without the mutex, by one thread.
  virtual void wait() noexcept = 0;
  /// Ends a wait(), this one or the next. From any thread.
  virtual void wake() noexcept = 0;

  /// Closes every wire and returns when no transfer is left; then there is nothing to call but the destructor.
  virtual void shutdown(FabricEvents& events) noexcept = 0;

  /// Null where the library has no reduction of its own.
  [[nodiscard]] virtual NativeSum* native_sum() noexcept { return nullptr; }
};

/// What a module exports, as "troupe_fabric_version" and "troupe_make_fabric". Raise the version with every change of
/// this header or of transport/mpi/job.hpp: a module that another build left behind is refused.
inline constexpr int kFabricVersion = 4;
using FabricVersion = int();
using MakeFabric = void(const FabricOptions& options, core::Result<std::unique_ptr<Fabric>>& made);

}  // namespace troupe::transport
