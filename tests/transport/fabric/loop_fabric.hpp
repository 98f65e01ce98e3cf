/// Fabrics that meet within this process, so that a test can damage, drop and repeat what moves between FabricEndpoints.
/// Thread-safe; the functions are called one at a time, by whoever sends.
#pragma once

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

#include "endpoint_contract.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport::testing {

class LoopNet : public std::enable_shared_from_this<LoopNet> {
 public:
  /// What becomes of a frame: how often it arrives, after what was done to its bytes.
  using OnFrame = std::function<int(Bytes& frame)>;
  using OnPayload = std::function<void(std::span<std::byte> payload)>;
  void set(OnFrame on_frame);
  void set(OnPayload on_payload);

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

  std::mutex mutex_;
  OnFrame on_frame_ = [](Bytes&) { return 1; };
  OnPayload on_payload_ = [](auto) {};
  std::condition_variable changed_;
  std::map<std::string, Member> members_;
  std::map<std::uint64_t, Posted> posted_;  // by channel
  std::uint64_t next_ = 1;
};

}  // namespace troupe::transport::testing
