/// A shard of the centre in virtual time: the port of a ServerHost. Handles requests one after the other in order of arrival. Each costs
/// the server's time per request, plus the bytes that its kernels touch divided by the server's memory speed.
#pragma once

#include <map>

#include "experiment/bad_updates.hpp"
#include "sim/world.hpp"
#include "strategies/host/server_host.hpp"

namespace troupe::sim {

class Server final : public strategies::ServerPort {
 public:
  Server(World& world, strategies::ShardId self);

  /// Handles a request; the answer reuses its packet. A request of a worker that is known to be lost, or of an earlier life of it, is
  /// ignored and its packet ends.
  void receive(std::uint32_t packet);
  void membership_changed() { host_.membership_changed(world_.membership); }
  void deadline_passed(strategies::DeadlineId id) { host_.deadline_passed(id); }

  [[nodiscard]] const strategies::ServerHost& host() const noexcept { return host_; }
  [[nodiscard]] Duration busy() const noexcept { return busy_; }  ///< time spent on requests

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
  Duration free_{0};  // when all requests that arrived are handled; may be ahead of the world's clock
  Duration busy_{0};
  std::uint64_t requests_ = 0;
  std::map<strategies::WorkerId, experiment::BadUpdates> bad_pushes_;  // consecutive
  strategies::ServerHost host_;
};

}  // namespace troupe::sim
