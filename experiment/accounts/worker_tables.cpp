#include "experiment/accounts/worker_tables.hpp"

namespace troupe::experiment {

bool WorkerTables::due(std::uint32_t worker, double at_s) {
  const auto next = next_.find(worker);
  if (next != next_.end() && at_s < next->second) return false;
  next_[worker] = at_s + every_s_;
  return true;
}

}  // namespace troupe::experiment
