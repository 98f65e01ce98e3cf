/// A run as readable lines: the events that each member received, with times.
#pragma once

#include <string>
#include <vector>

#include "sim/explore/world/invariant.hpp"

namespace troupe::explore {

[[nodiscard]] std::string to_text(const WorkerEvent& event);
[[nodiscard]] std::string to_text(const ServerEvent& event);

class EventLog final : public Invariant {
 public:
  void step_begins(const Cluster& cluster, const StepBegins& begins) override;
  void told(const Cluster& cluster, WorkerId worker, const WorkerEvent& event) override;
  void told(const Cluster& cluster, ShardId shard, const ServerEvent& event) override;
  void dropped(const Cluster& cluster, ShardId shard, const Request& request) override;
  void refused(const Cluster& cluster, ShardId shard, const Request& request) override;
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  void add(const Cluster& cluster, const std::string& who, const std::string& what);
  std::vector<std::string> lines_;
};

}  // namespace troupe::explore
