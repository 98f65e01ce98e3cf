/// What happens in a service as lines, from the rows of its jobs, runs and nodes: a line whenever one has changed so that a person would
/// want to know. Pure: no clock, no connection. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::apps {

class ServiceLines {
 public:
  /// `first`: the row is part of what there was when watching began: only what is under way is said.
  [[nodiscard]] std::optional<std::string> job(const nlohmann::ordered_json& row, bool first = false);
  [[nodiscard]] std::optional<std::string> run(const nlohmann::ordered_json& row, bool first = false);
  [[nodiscard]] std::optional<std::string> node(const nlohmann::ordered_json& row, bool first = false);

  /// A line of a run's metrics.jsonl: starts, ends, evaluations, warnings, and notes of members that are lost or come.
  [[nodiscard]] static std::optional<std::string> of_run(const std::string& run, const nlohmann::ordered_json& line);

 private:
  /// Whether `said` differs from what was said of `what` before.
  bool changed(const std::string& what, std::string said);
  std::map<std::string, std::string> said_;
};

}  // namespace troupe::apps
