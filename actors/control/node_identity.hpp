/// Gives an actor system a random node id. CAF 0.17 derives the id from the MAC addresses and the process id. Two containers on two
/// hosts often share both, and each would treat the other as itself. Load it after the middleman.
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
  id_t id() const override { return network_manager; }  // an unused place; CAF initialises it after the middleman
  void* subtype_ptr() override { return this; }

 private:
  caf::actor_system& system_;
};

}  // namespace troupe::actors
