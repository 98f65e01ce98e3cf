#include "service/events/hub.hpp"

namespace troupe::service {

std::shared_ptr<EventQueue> EventHub::subscribe() {
  auto queue = std::make_shared<EventQueue>();
  const std::scoped_lock lock(mutex_);
  clients_.push_back(queue);
  return queue;
}

void EventHub::publish(std::string_view name, std::string_view data) {
  const auto event = make_event(name, data, {});
  const std::scoped_lock lock(mutex_);
  std::erase_if(clients_, [&](const std::weak_ptr<EventQueue>& client) {
    const auto queue = client.lock();
    return !queue || !queue->push(event);
  });
}

bool EventHub::listened_to() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(clients_, [](const std::weak_ptr<EventQueue>& client) {
    const auto queue = client.lock();
    return !queue || queue->abandoned();
  });
  return !clients_.empty();
}

}  // namespace troupe::service
