#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "cpu/neurons/replica.hpp"
#include "nn/program/buckets.hpp"

namespace troupe::cpu {
namespace {

/// Only a rank that is lost, or a machine that stands still, takes so long.
constexpr std::chrono::minutes kRankDeadline{10};

core::Result<void> check_neurons(const nn::Graph& graph, const nn::CompileOptions& options) {
  const auto refuse = [&](std::string_view why) {
    return core::fail(core::Errc::config, fmt::format("model {}: model.parallel = \"neurons\" {}", graph.name(), why));
  };
  if (options.precision != nn::Precision::fp32)
    return refuse("computes in float32 only: set cluster.precision = \"fp32\"");
  if (options.recompute) return refuse("cannot compute activations again: set train.recompute = false");
  return {};
}

core::Result<core::Buffer> arena(const nn::Graph& graph, const nn::CompileOptions& options, std::size_t floats,
                                 const char* what) {
  return core::Buffer::allocate(*options.arenas, floats, fmt::format("{} of {}", what, graph.name()));
}

core::Result<CompiledRanks> compile_ranks(const nn::Graph& graph, const nn::CompileOptions& options,
                                          const std::vector<nn::LinearLink>& links, std::size_t& node) {
  auto choices = options.plan == nullptr ? Choices::by_rule(graph, options.precision)
                                         : Choices::from_plan(*options.plan, options.precision);
  if (!choices) return tl::unexpected(std::move(choices.error()));
  CompiledRanks result;
  result.layout = std::make_shared<const nn::Layout>(nn::plain_layout(graph));
  auto parameters = arena(graph, options, result.layout->arena_floats(), "parameters");
  if (!parameters) return tl::unexpected(std::move(parameters.error()));
  result.parameters = std::move(*parameters);
  if (options.training) {
    auto gradients = arena(graph, options, result.layout->arena_floats(), "gradients");
    if (!gradients) return tl::unexpected(std::move(gradients.error()));
    result.gradients = std::move(*gradients);
    auto cut = nn::cut_buckets(graph, *result.layout, nn::kBucketFloats);
    result.buckets = std::move(cut.buckets);
    result.last_nodes = std::move(cut.last_nodes);
  }
  const auto ranks = static_cast<std::size_t>(options.threads);
  result.layers = std::make_shared<const std::vector<SplitLayer>>(split_layers(links, options.batch, ranks));
  const RankSetup setup{.graph = graph,
                        .layers = *result.layers,
                        .layout = *result.layout,
                        .parameters = result.parameters.data(),
                        .gradients = result.gradients.data(),
                        .batch = options.batch,
                        .engine = dnnl::engine(dnnl::engine::kind::cpu, 0),
                        .choices = *choices};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto program = RankProgram::compile(setup, rank, node);
    if (!program) return tl::unexpected(std::move(program.error()));
    result.programs.push_back(std::move(*program));
  }
  auto communicators = Communicator::connect(ranks, kRankDeadline);
  if (!communicators) return tl::unexpected(std::move(communicators.error()));
  result.communicators = std::move(*communicators);
  result.plan = choices->to_plan();
  return result;
}

}  // namespace

core::Result<std::unique_ptr<nn::Replica>> compile_neurons(const nn::Graph& graph, const nn::CompileOptions& options) {
  if (auto checked = check_neurons(graph, options); !checked) return tl::unexpected(std::move(checked.error()));
  const auto links = nn::linear_chain(graph);
  if (!links) return tl::unexpected(links.error());
  std::size_t node = 0;
  try {
    auto compiled = compile_ranks(graph, options, *links, node);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    return std::make_unique<NeuronParallelReplica>(graph, options, std::move(*compiled));
  } catch (const NoSuchImplementation& missing) {
    return core::fail(core::Errc::config,
                      fmt::format("{}this CPU or oneDNN has no {} for layer {} of {}", nn::kPlanRefused,
                                  missing.implementation, graph.nodes()[node].name, graph.name()));
  } catch (const dnnl::error& error) {
    const auto code = error.status == dnnl_out_of_memory ? core::Errc::out_of_memory : core::Errc::config;
    return core::fail(code, fmt::format("oneDNN cannot compute layer {} of {} with batch {}: {}",
                                        graph.nodes()[node].name, graph.name(), options.batch, error.what()));
  } catch (const std::system_error& error) {
    return core::fail(core::Errc::io, fmt::format("model {}: no thread for each of {} ranks: {}", graph.name(),
                                                  options.threads, error.what()));
  }
}

}  // namespace troupe::cpu
