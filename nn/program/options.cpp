#include "nn/program/options.hpp"

#include <fmt/format.h>

namespace troupe::nn {
namespace {

/// Limit of a layer's values for a whole batch: products of sizes stay far below the overflow of int64.
constexpr std::int64_t kMostValues = std::int64_t{1} << 45;

}  // namespace

tl::unexpected<core::Error> refuse(const Graph& graph, const std::string& backend, const std::string& why) {
  return core::fail(core::Errc::config, fmt::format("model {} on {}: {}", graph.name(), backend, why));
}

core::Result<void> check_options(const Graph& graph, const CompileOptions& options, const std::string& backend) {
  const auto refused = [&](const std::string& why) { return refuse(graph, backend, why); };
  if (options.batch < 1) return refused(fmt::format("batch {} is below 1", options.batch));
  if (options.threads < 1) return refused(fmt::format("threads {} is below 1", options.threads));
  if (options.arenas == nullptr) return refused("no allocator for the arenas was given");
  for (const Node& node : graph.nodes()) {
    if (options.batch > kMostValues / std::max<std::int64_t>(node.output.size(), graph.input().size()))
      return core::fail(core::Errc::out_of_memory,
                        fmt::format("layer {} of {} with batch {} has more values than there are addresses: use a "
                                    "smaller batch or a smaller model",
                                    node.name, graph.name(), options.batch));
    const bool one_value = options.batch * node.output.height * node.output.width == 1;
    if (std::holds_alternative<BatchNormLayer>(node.layer) && options.training && one_value)
      return refused(fmt::format(
          "layer {} has one value per channel in a batch of 1, which has no variance: use a batch of 2 or more",
          node.name));
  }
  return {};
}

}  // namespace troupe::nn
