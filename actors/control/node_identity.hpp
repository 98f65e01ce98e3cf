/// Gives an actor system a random node id. CAF 0.17 derives it from the MAC addresses and the process id, which two
/// containers on two hosts often share: each would then take the other for itself. Loaded after the middleman.
#pragma once

#include <caf/actor_system.hpp>

namespace troupe::actors {

class NodeIdentity final : public caf::actor_system::module {
 public:
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);

  explicit NodeIdentity(caf::actor_system& system) : system_(system) {}
  void start() override {}
  void stop() override {}
  void init(caf::actor_system_config&) override;
  id_t id() const override { return network_manager; }  // a place that nobody has, whose turn is after the middleman's
  void* subtype_ptr() override { return this; }

 private:
  caf::actor_system& system_;
};

}  // namespace troupe::actors
