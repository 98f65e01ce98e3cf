/// Names of the nodes of one graph. Thread rule: none; used while a graph is made.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nn/graph.hpp"

namespace troupe::nn {

/// The model's input, as nodes call it.
inline constexpr std::string_view kInputName = "input";

class NodeNames {
 public:
  /// A new name: `given`, or else `prefix`, the kind of the layer and its first free number ("block.0.conv1"). Empty: `given` is taken.
  [[nodiscard]] std::string take(const Layer& layer, const std::string& given, const std::string& prefix = {});
  [[nodiscard]] bool contains(const std::string& name) const { return taken_.contains(name); }
  [[nodiscard]] std::vector<std::string> all() const { return {taken_.begin(), taken_.end()}; }

 private:
  std::set<std::string> taken_{std::string(kInputName)};
  std::map<std::string, int> numbered_;  // by prefix and kind
};

}  // namespace troupe::nn
