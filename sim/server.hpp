/// A shard of the centre in virtual time: the port of a ServerHost. Works on requests one after the other, in the order in which
/// they arrive; each takes the server's time per request, and its kernels the bytes that they touch over the speed of its memory.
#pragma once

#include <map>

#include "experiment/bad_updates.hpp"
#include "sim/world.hpp"
#include "strategies/host/server_host.hpp"

namespace troupe::sim {

class Server final : public strategies::ServerPort {
 public:
  Server(World& world, strategies::ShardId self);

  /// A request is here. The answer goes back in the same packet. One of a worker that is known to be lost, or of an earlier life of it,
  /// is not heard: the packet is over.
  void receive(std::uint32_t packet);
  void membership_changed() { host_.membership_changed(world_.membership); }
  void deadline_passed(strategies::DeadlineId id) { host_.deadline_passed(id); }

  [[nodiscard]] const strategies::ServerHost& host() const noexcept { return host_; }
  [[nodiscard]] Duration busy() const noexcept { return busy_; }  ///< time spent working

  // strategies::ServerPort
  [[nodiscard]] Duration now() const override;
  [[nodiscard]] bool usable(strategies::RequestId payload) const override;
  void run(const strategies::KernelCall& call, strategies::RequestId payload) override;
  void reply(const strategies::ShardReply& reply) override;
  void set_deadline(strategies::DeadlineId id, Duration after) override;

 private:
  void work(Duration time);
  void look_at_push(strategies::WorkerId worker, bool refused);

  World& world_;
  strategies::ShardId self_;
  std::uint64_t floats_;
  Duration free_{0};  // when it has worked off what has arrived: it may be ahead of the world's clock
  Duration busy_{0};
  std::uint64_t requests_ = 0;
  std::map<strategies::WorkerId, experiment::BadUpdates> bad_pushes_;  // in a row
  strategies::ServerHost host_;
};

}  // namespace troupe::sim
