/// The fabric of the endpoint `ucx`: UCX's active messages for frames, its tagged rendezvous for bulk. An address is a random
/// number and the UCP worker address, in hex. Only the module troupe_ucx.so contains it. Thread rule: that of Fabric.
///
/// A wire is one UCP endpoint with peer error handling, so the loss of a peer is detected (keep-alive 1 s) and a wire can be closed
/// by force. UCX does not use shared memory for such wires. Nothing is encrypted.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport {

class UcxFabric final : public Fabric {
 public:
  /// Errc::config: UCX does not start with these transports. Errc::io: any other error of UCX.
  [[nodiscard]] static core::Result<std::unique_ptr<Fabric>> make(const FabricOptions& options);
  ~UcxFabric() override;

  [[nodiscard]] const std::string& address() const noexcept override { return address_; }
  [[nodiscard]] std::size_t max_transfer_bytes() const noexcept override { return PTRDIFF_MAX; }
  [[nodiscard]] bool takes_device() const noexcept override { return takes_device_; }
  [[nodiscard]] core::Result<WireId> open(std::string_view address) override;
  void send_frame(WireId wire, std::span<const std::byte> frame) override;
  [[nodiscard]] std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) override;
  void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) override;
  void close(WireId wire) override;
  bool progress(FabricEvents& events) override;
  [[nodiscard]] bool prepare_to_wait() override;
  void wait() noexcept override;
  void wake() noexcept override;
  void shutdown(FabricEvents& events) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Wire {
    UcxFabric* fabric;
    WireId id;
    ucp_ep_h ep = nullptr;
    bool lost = false;
    bool closing = false;
    bool flushed = false;
    Clock::time_point give_up{};  // closing: the end of the grace time
  };
  /// A pending operation of UCX, which holds this object's address.
  struct Request {
    enum class Kind : std::uint8_t { frame, flush, release, send, receive } kind;
    UcxFabric* fabric;
    WireId wire;
    TransferId transfer{};
    std::size_t size = 0;
    std::vector<std::byte> frame{};
    void* handle = nullptr;
    std::list<Request>::iterator self{};
  };
  /// A transfer with pieces that have not ended.
  struct Cut {
    std::size_t pieces_left = 0;
    bool whole = true;  // so far
  };
  struct Event {
    enum class Kind : std::uint8_t { frame, piece, transferred, lost } kind;
    std::vector<std::byte> frame{};
    TransferId transfer{};
    bool whole = false;
    WireId wire{};
    std::string why{};
  };

  UcxFabric() = default;
  [[nodiscard]] core::Result<void> start(const FabricOptions& options);
  Request& begin(Request::Kind kind, WireId wire, TransferId transfer = {});
  /// Handles the value that a call of UCX returned: the request has ended, or its callback will end it.
  void began(Request& request, void* handle);
  void ended(Request& request, ucs_status_t status);
  void piece_ended(TransferId transfer, bool whole);
  void release(Wire& wire);
  void flush_worker();
  bool advance_closing();
  bool dispatch(FabricEvents& events);

  static ucs_status_t on_active_message(void* self, const void* header, std::size_t header_length, void* data,
                                        std::size_t length, const ucp_am_recv_param_t* param);
  static void on_error(void* wire, ucp_ep_h ep, ucs_status_t status);
  static void on_sent(void* handle, ucs_status_t status, void* request);
  static void on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* request);

  std::string address_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool takes_device_ = false;  // UCX has its CUDA transports, and they have found a device
  int worker_fd_ = -1;         // owned by UCX
  int wake_fd_ = -1;
  int wait_ms_ = -1;  // of the next wait()
  std::uint64_t next_wire_ = 1;
  std::uint64_t next_channel_ = 1;
  std::unordered_map<WireId, std::unique_ptr<Wire>> wires_;
  std::size_t closing_ = 0;  // number of closing wires
  std::list<Request> requests_;
  std::unordered_map<TransferId, Cut> cuts_;
  std::deque<Event> events_;
};

}  // namespace troupe::transport
