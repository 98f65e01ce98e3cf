/// Which `worker` lines of metrics.jsonl have the worker's two tables, `waits` and `traffic`. A table has an entry for each other member, so with all of
/// them in each line the file would grow with the square of the members. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>

namespace troupe::experiment {

class WorkerTables {
 public:
  /// Between two lines of a worker with its tables: 20 ms for each member of the run beyond the fifth. With five each line has them.
  static constexpr double kPerMember_s = 0.02;
  static constexpr std::uint32_t kFew = 5;

  /// `members`: workers and servers.
  explicit WorkerTables(std::uint32_t members) : every_s_(members > kFew ? kPerMember_s * (members - kFew) : 0) {}

  /// Whether the worker's line at the second `at_s` has them. A worker's first line has them.
  [[nodiscard]] bool due(std::uint32_t worker, double at_s);

 private:
  double every_s_;
  std::map<std::uint32_t, double> next_{};  // by worker
};

}  // namespace troupe::experiment
