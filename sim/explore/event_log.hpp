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
  void step_begins(const VirtualRun& run, const StepBegins& begins) override;
  void told(const VirtualRun& run, WorkerId worker, const WorkerEvent& event) override;
  void told(const VirtualRun& run, ShardId shard, const ServerEvent& event) override;
  void dropped(const VirtualRun& run, ShardId shard, const Request& request) override;
  void refused(const VirtualRun& run, ShardId shard, const Request& request) override;
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  void add(const VirtualRun& run, const std::string& who, const std::string& what);
  std::vector<std::string> lines_;
};

}  // namespace troupe::explore
