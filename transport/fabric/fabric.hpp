/// The interface to a communication library (UCX, MPI), from which FabricEndpoint makes an Endpoint: small ordered frames, and bulk
/// transfers straight between memories that both sides have named. Libraries are loaded when used: a module (troupe_ucx.so,
/// troupe_mpi.so) contains one Fabric; troupe_mpi.so also contains the launcher's Job (transport/mpi/job.hpp).
///
/// Thread rule: one call at a time (the endpoint's mutex), except wait() and wake(). No call blocks on a peer, except shutdown(),
/// which waits for a limited time. Events are reported only from within progress() and shutdown().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/memory_view.hpp"

namespace troupe::transport {

/// A connection to one remote fabric, as its opener sees it. Never reused.
enum class WireId : std::uint64_t {};

/// One bulk transfer; the caller chooses the id.
enum class TransferId : std::uint64_t {};

/// The receiver of events.
class FabricEvents {
 public:
  /// A frame from any process. The sender is named only by the frame, which must be checked.
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  /// The memory is free. `whole`: all bytes have arrived (receive) or were handed over (send).
  virtual void on_transferred(TransferId transfer, bool whole) = 0;
  /// A piece of the transfer has moved; more pieces follow.
  virtual void on_piece(TransferId transfer) = 0;
  /// Nothing moves on this wire any more. The endpoint must still close it.
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
  std::string transports{};  // ucx: UCX_TLS for this endpoint, "tcp,self"; empty: the environment's
  std::size_t piece = 0;     // mpi: bytes of a transfer, or floats of a sum, that one call of MPI moves
};

class Fabric {
 public:
  /// Limit of a frame. It fits into one packet of every library, so the frames of one wire arrive in order.
  static constexpr std::size_t kMaxFrameBytes = 6 << 10;
  /// Limit of a piece. Transfers are cut into pieces, so that progress shows on a slow link.
  static constexpr std::size_t kMaxPieceBytes = 4 << 20;

  virtual ~Fabric() = default;

  /// Printable, without '/', unique for ever. At most 2 KiB.
  [[nodiscard]] virtual const std::string& address() const noexcept = 0;
  [[nodiscard]] virtual std::size_t max_transfer_bytes() const noexcept = 0;
  /// Whether transfers may name a CUDA device's memory: the library as it is here was built for it, and finds a device.
  [[nodiscard]] virtual bool takes_device() const noexcept { return false; }
  /// Errc::usage: the address is invalid. Errc::peer_lost: it is known at once that the peer does not exist.
  [[nodiscard]] virtual core::Result<WireId> open(std::string_view address) = 0;
  /// Copies the frame and sends it. Frames of one wire arrive in the order in which they were sent, or the wire is lost. No effect
  /// on a lost wire.
  virtual void send_frame(WireId wire, std::span<const std::byte> frame) = 0;

  /// Posts memory for a transfer that the peer will start, and returns the channel that the peer must name.
  [[nodiscard]] virtual std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) = 0;
  /// Call it only after the peer has posted its memory under `channel`.
  virtual void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) = 0;

  /// Sends pending frames and closes the wire, by force after a short grace time. Its transfers are reported as they end.
  virtual void close(WireId wire) = 0;

  /// Does all work that is possible now and reports it. False: there was none.
  virtual bool progress(FabricEvents& events) = 0;
  /// Call it before wait(). False: an event came meanwhile, call progress() again.
  [[nodiscard]] virtual bool prepare_to_wait() = 0;
  /// Sleeps until progress() may have work. Called without the mutex, by one thread.
  virtual void wait() noexcept = 0;
  /// Ends the current wait() or the next. From any thread.
  virtual void wake() noexcept = 0;

  /// Closes every wire and returns when no transfer is left. After it only the destructor may be called.
  virtual void shutdown(FabricEvents& events) noexcept = 0;

  /// Null where the library has no reduction.
  [[nodiscard]] virtual NativeSum* native_sum() noexcept { return nullptr; }
};

/// Whether a library may be given addresses of CUDA devices, as it is on this machine.
struct DeviceSupport {
  std::optional<bool> takes{};  // none: it says so only in a run
  std::string why_not{};        // one line, unless it takes them
};

/// The functions that a module exports as "troupe_fabric_version", "troupe_make_fabric" and "troupe_device_support". Raise the version
/// with every change of this header or of transport/mpi/job.hpp: a module of another version is refused.
inline constexpr int kFabricVersion = 6;
using FabricVersion = int();
using MakeFabric = void(const FabricOptions& options, core::Result<std::unique_ptr<Fabric>>& made);
using FindDeviceSupport = void(const FabricOptions& options, DeviceSupport& found);

}  // namespace troupe::transport
