/// Events for all dashboards: which runs, jobs and nodes have changed. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "service/http/event_queue.hpp"

namespace troupe::service {

class EventHub {
 public:
  /// A client's queue. It gets what is published from now on.
  [[nodiscard]] std::shared_ptr<EventQueue> subscribe();
  /// To all clients. `data`: one line.
  void publish(std::string_view name, std::string_view data);
  /// Whether anyone listens.
  [[nodiscard]] bool listened_to();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventQueue>> clients_;
};

}  // namespace troupe::service
