/// Fabrics that connect within this process, so that a test can damage, drop and repeat frames between FabricEndpoints.
/// Thread-safe. The two functions run on the sender's thread, one call at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tests/transport/endpoint_contract.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport::testing {

class LoopNet : public std::enable_shared_from_this<LoopNet> {
 public:
  /// May change the frame's bytes. Returns how often the frame arrives.
  using OnFrame = std::function<int(Bytes& frame)>;
  using OnPayload = std::function<void(std::span<std::byte> payload)>;
  void set(OnFrame on_frame);
  void set(OnPayload on_payload);
  /// Transfers may name memory of a FakeDevice from now on.
  void take_device() noexcept { takes_device_ = true; }
  /// Transfers so far whose memory here or there was a device's.
  [[nodiscard]] unsigned device_transfers() const noexcept { return device_transfers_; }

  [[nodiscard]] std::unique_ptr<Fabric> make();

 private:
  friend class LoopFabric;
  struct Event {
    Bytes frame{};
    TransferId transfer{};
    bool whole = false;
  };
  struct Member {
    std::vector<Event> inbox{};
    bool woken = false;
  };
  struct Posted {
    std::string owner;
    WireId wire;
    MemoryView memory;
    TransferId transfer;
  };

  std::atomic<bool> takes_device_{false};
  std::atomic<unsigned> device_transfers_{0};
  std::mutex mutex_;
  OnFrame on_frame_ = [](Bytes&) { return 1; };
  OnPayload on_payload_ = [](auto) {};
  std::condition_variable changed_;
  std::map<std::string, Member> members_;
  std::map<std::uint64_t, Posted> posted_;  // by channel
  std::uint64_t next_ = 1;
};

}  // namespace troupe::transport::testing
