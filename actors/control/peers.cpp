#include "actors/control/peers.hpp"

namespace troupe::actors {

void ControlPeers::publish(caf::actor_id actor) {
  const std::lock_guard lock(mutex_);
  published_.insert(actor);
}

bool ControlPeers::is_published(caf::actor_id actor) {
  const std::lock_guard lock(mutex_);
  return published_.contains(actor);
}

std::shared_ptr<ControlPeer> ControlPeers::claim(const std::string& node, const std::string& certificate) {
  if (node.empty() || node == own_) return nullptr;
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.peer.expired(); });
  auto& known = known_[node];
  if (auto peer = known.peer.lock()) return known.certificate == certificate ? peer : nullptr;
  auto peer = std::make_shared<ControlPeer>();
  known = {certificate, peer};
  return peer;
}

}  // namespace troupe::actors
