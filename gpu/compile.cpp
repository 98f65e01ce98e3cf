#include "gpu/compile.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/input_buffers.hpp"
#include "gpu/program/graph_lowering.hpp"
#include "nn/initialise.hpp"
#include "nn/program/buckets.hpp"

namespace troupe::gpu {
namespace {

/// The most workspace of an engine, in bytes: the first, unless device memory runs out.
constexpr std::array<std::size_t, 4> kWorkspaceLimits{std::size_t{1} << 30, std::size_t{64} << 20, std::size_t{8} << 20,
                                                      0};

Type type_of(nn::Precision precision) {
  return precision == nn::Precision::bf16 ? Type::bf16 : precision == nn::Precision::fp16 ? Type::fp16 : Type::fp32;
}

core::Result<ArenaBuffers> allocate_arenas(core::Allocator& allocator, const nn::Graph& graph, const nn::Layout& layout,
                                           const nn::Layout& statistics, bool training) {
  ArenaBuffers arenas;
  struct Wanted {
    core::Buffer* buffer;
    std::size_t floats;
    const char* what;
  };
  for (const auto& [buffer, floats, what] :
       {Wanted{&arenas.parameters, layout.arena_floats(), "parameters"},
        Wanted{&arenas.gradients, training ? layout.arena_floats() : 0, "gradients"},
        Wanted{&arenas.statistics, statistics.arena_floats(), "statistics"}}) {
    if (floats == 0) continue;
    auto allocated = core::Buffer::allocate(allocator, floats, fmt::format("{} of {}", what, graph.name()));
    if (!allocated) return tl::unexpected(std::move(allocated.error()));
    *buffer = std::move(*allocated);
  }
  return arenas;
}

/// The numbers of operations of backward after which each bucket is final.
std::vector<std::size_t> ends_of(const std::vector<nn::Bucket>& buckets, const nn::Graph& graph,
                                 const nn::Layout& layout, const std::vector<Operation>& backward) {
  std::vector<std::size_t> ends(buckets.size(), 0);
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const auto offset = static_cast<std::size_t>(layout.tensors()[i].offset);
    const auto bucket = std::ranges::find_if(
        buckets, [&](const nn::Bucket& b) { return offset >= b.offset && offset < b.offset + b.count; });
    const auto last = std::ranges::find(backward, graph.parameters()[i].node, &Operation::finished_node);
    auto& end = ends[static_cast<std::size_t>(bucket - buckets.begin())];
    if (last != backward.end()) end = std::max(end, static_cast<std::size_t>(last - backward.begin()) + 1);
  }
  for (std::size_t b = 1; b < ends.size(); ++b) ends[b] = std::max(ends[b], ends[b - 1]);
  return ends;
}

std::string megabytes(std::size_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

/// What memory a model needs, to say it when there is too little.
struct Needs {
  std::size_t arenas = 0;
  std::size_t workspace = 0;
  bool is_host = false;  // there is too little memory for the mirrors: nothing on the device would help
};

core::Error too_little(const Device& device, const nn::Graph& graph, const nn::CompileOptions& options,
                       const Needs& needs, const core::Error& error) {
  return {core::Errc::out_of_memory,
          fmt::format(
              "model {} with batch {} needs {} for its parameters and {} for a step, which {} with {} does not have "
              "left: use a smaller batch{} ({})",
              graph.name(), options.batch, megabytes(needs.arenas), megabytes(needs.workspace), device.info().name,
              megabytes(device.info().memory), options.recompute ? "" : " or train.recompute = true", error.message)};
}

core::Result<Compiled> compile_within(Device& device, const nn::Graph& graph, const nn::CompileOptions& options,
                                      EngineCache* cache, std::size_t workspace, Needs& needs) {
  Choices choices(device, options.precision, options.measure, cache);
  if (options.plan != nullptr)
    if (auto taken = choices.take(*options.plan); !taken) return tl::unexpected(std::move(taken.error()));
  choices.limit_workspace(workspace);

  const Type type = type_of(options.precision);
  ProgramBuilder builder(graph.parameters().size(), type);
  const Math math = options.precision == nn::Precision::tf32 ? Math::tf32 : Math::fp32;
  Lowering lowering{graph, options, builder, choices, type, math};
  GraphLowering graph_lowering(lowering);
  StepOperands operands;
  try {
    operands = graph_lowering.run();
  } catch (LoweringFailed& failed) {
    core::Error error = std::move(failed.error);
    if (error.code == core::Errc::config)
      error.message += fmt::format(" (layer {} of {})",
                                   graph.nodes()[static_cast<std::size_t>(graph_lowering.node())].name, graph.name());
    return tl::unexpected(std::move(error));
  }

  Compiled result;
  result.layout = std::make_shared<const nn::Layout>(
      options.canonical_arenas ? nn::plain_layout(graph) : builder.arena_layout(graph.parameters()));
  const nn::Layout statistics = nn::statistics_layout(graph);
  needs = {(result.layout->arena_floats() * (options.training ? 2 : 1) + statistics.arena_floats()) * sizeof(float),
           builder.plan(*result.layout, options.recompute) + InputBuffers::bytes(graph, options), false};

  const bool is_device = options.arenas->space() == core::MemorySpace::device;
  auto arenas = allocate_arenas(is_device ? *options.arenas : device.memory(), graph, *result.layout, statistics,
                                options.training);
  if (!arenas) return tl::unexpected(std::move(arenas.error()));
  result.arenas = std::move(*arenas);
  if (!is_device) {
    auto mirrors = allocate_arenas(*options.arenas, graph, *result.layout, statistics, options.training);
    needs.is_host = !mirrors;
    if (!mirrors) return tl::unexpected(std::move(mirrors.error()));
    result.mirrors = std::move(*mirrors);
    if (!result.mirrors.statistics.empty()) nn::initialise_statistics(graph, result.mirrors.statistics.view());
  }
  auto program = builder.build({*result.layout, statistics, result.arenas.parameters.data(),
                                result.arenas.gradients.data(), result.arenas.statistics.data()},
                               device.memory());
  if (!program) return tl::unexpected(std::move(program.error()));
  result.program = std::move(*program);
  result.program.images = {builder.address_of(result.program, operands.images).address, operands.images.shape,
                           operands.images.type, operands.images.is_plain};
  result.program.input = builder.address_of(result.program, operands.input);
  result.program.outputs = builder.address_of(result.program, operands.outputs);
  result.program.sums = builder.address_of(result.program, operands.sums);
  auto inputs = InputBuffers::allocate(device, graph, options);
  if (!inputs) return tl::unexpected(std::move(inputs.error()));
  result.inputs = std::move(*inputs);
  for (const nn::Head& head : graph.heads()) result.program.weights.push_back(head.weight);
  if (options.training) {
    result.buckets = nn::cut_buckets(graph, *result.layout, nn::kBucketFloats).buckets;
    const std::size_t chunks = squared_norm_scratch(static_cast<std::int64_t>(result.layout->arena_floats()));
    auto scratch = core::Buffer::allocate(
        device.memory(), core::align_floats((UpdateScratch::kChunks + chunks * sizeof(double)) / sizeof(float)),
        "scratch memory of an optimizer step");
    if (!scratch) return tl::unexpected(std::move(scratch.error()));
    result.update_scratch = std::move(*scratch);
    result.bucket_ends = ends_of(result.buckets, graph, *result.layout, result.program.backward);
  }
  result.plan = choices.to_plan();
  return result;
}

}  // namespace

core::Result<Compiled> compile(Device& device, const nn::Graph& graph, const nn::CompileOptions& options,
                               EngineCache* cache) {
  Needs needs;
  for (const std::size_t limit : kWorkspaceLimits) {
    auto compiled = compile_within(device, graph, options, cache, limit, needs);
    if (compiled || compiled.error().code != core::Errc::out_of_memory || needs.is_host) return compiled;
    const bool is_last = options.plan != nullptr || limit == kWorkspaceLimits.back();
    if (is_last && needs.arenas == 0) return compiled;  // memory ran out before it was known how much is needed
    if (is_last) return tl::unexpected(too_little(device, graph, options, needs, compiled.error()));
  }
  return core::fail(core::Errc::internal, "no limit of the workspace was tried");
}

}  // namespace troupe::gpu
