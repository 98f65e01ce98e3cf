#include "service/http/connections.hpp"

#include <utility>

namespace troupe::service {

bool Woken::add(std::weak_ptr<OpenSession> session) {
  const std::scoped_lock lock(mutex_);
  sessions_.push_back(std::move(session));
  return sessions_.size() == 1;
}

void Woken::wake_all() {
  std::vector<std::weak_ptr<OpenSession>> sessions;
  {
    const std::scoped_lock lock(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& session : sessions)
    if (const auto open = session.lock()) open->wake();
}

}  // namespace troupe::service
