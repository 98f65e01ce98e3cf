// Engines of a graph: those that cuDNN's heuristics propose, and the one that an earlier run chose.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gpu/cuda/cudnn/graph.hpp"

namespace troupe::gpu {
namespace {

using Raw = cudnnBackendDescriptor_t;

/// The filter's answer for an engine with these notes.
bool allows(const CudnnFilter& filter, const std::vector<cudnnBackendNumericalNote_t>& notes) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return filter.deterministic;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: return !filter.tensor_cores;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return true;
      default: return false;
    }
  });
}

core::Result<CudnnEngine> engine_of(const CudnnDescriptor& config, const CudnnDescriptor& engine) {
  CudnnEngine made;
  const auto index = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
  if (!index) return tl::unexpected(index.error());
  made.index = *index;
  const auto choices = config.get_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                              CUDNN_KNOB_TYPE_COUNTS);
  if (!choices) return tl::unexpected(choices.error());
  for (const CudnnDescriptor& choice : *choices) {
    const auto type = choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
    if (!type) return tl::unexpected(type.error());
    const auto value = choice.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64);
    if (!value) return tl::unexpected(value.error());
    made.knobs.emplace_back(static_cast<std::int64_t>(*type), *value);
  }
  return made;
}

core::Error refused(std::string reason) { return {core::Errc::config, "cuDNN: " + std::move(reason)}; }

/// Finishes the plan of a configuration. Errc::config: the filter or cuDNN refuses it.
core::Result<CudnnPlan> plan_of(const CudnnTarget& target, const CudnnFilter& filter, CudnnDescriptor config,
                                CudnnDescriptor engine) {
  auto name = engine_of(config, engine);
  if (!name) return tl::unexpected(name.error());
  const auto notes = engine.get_all<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (!notes) return tl::unexpected(notes.error());
  if (!allows(filter, *notes))
    return tl::unexpected(refused(to_string(*name) + " does not compute as exactly as asked"));

  CudnnBuilder builder(target.library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle)
    builder.set_one(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  else
    builder.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  auto plan = builder.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).finish();
  if (!plan) return tl::unexpected(refused(fmt::format("{}: {}", to_string(*name), plan.error().message)));
  const auto workspace = plan->get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
  if (!workspace) return tl::unexpected(workspace.error());
  if (*workspace < 0 || static_cast<std::size_t>(*workspace) > filter.workspace)
    return tl::unexpected(refused(
        fmt::format("{} needs {} bytes of workspace, {} are allowed", to_string(*name), *workspace, filter.workspace)));
  return CudnnPlan{std::move(config), std::move(engine), std::move(*plan), std::move(*name),
                   static_cast<std::size_t>(*workspace)};
}

/// The configurations that one heuristic proposes; none when it has nothing for this graph.
std::vector<CudnnDescriptor> proposals(const CudnnTarget& target, const CudnnDescriptor& graph,
                                       cudnnBackendHeurMode_t mode) {
  CudnnBuilder builder(target.library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  builder.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!target.handle) builder.set_descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  const auto heuristic = builder.finish();
  if (!heuristic) return {};
  std::int64_t count = 0;
  if (target.library->get_attribute(heuristic->raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                    &count, nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  auto configs = heuristic->get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                            static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  if (!configs) return {};
  return std::move(*configs);
}

/// The engine of a configuration.
core::Result<CudnnDescriptor> engine_in(const CudnnDescriptor& config) {
  auto engines = config.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (!engines) return tl::unexpected(engines.error());
  if (engines->empty()) return core::fail(core::Errc::io, "cuDNN: a configuration has no engine");
  return std::move(engines->front());
}

}  // namespace

std::string to_string(const CudnnEngine& engine) {
  std::string text = fmt::format("cudnn {}", engine.index);
  for (const auto& [type, value] : engine.knobs) text += fmt::format(" {}={}", type, value);
  return text;
}

std::optional<CudnnEngine> parse_cudnn_engine(std::string_view text) {
  constexpr std::string_view kPrefix = "cudnn ";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  const auto number = [&](std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  const auto take = [&](char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
  };
  CudnnEngine engine;
  if (!number(engine.index)) return std::nullopt;
  while (!text.empty()) {
    std::int64_t type = 0, value = 0;
    if (!take(' ') || !number(type) || !take('=') || !number(value)) return std::nullopt;
    engine.knobs.emplace_back(type, value);
  }
  return engine;
}

core::Result<std::vector<CudnnPlan>> CudnnGraph::plans(const CudnnTarget& target, const CudnnFilter& filter,
                                                       std::size_t most) const {
  std::vector<CudnnPlan> found;
  std::vector<CudnnEngine> seen;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& config : proposals(target, *graph_, mode)) {
      if (found.size() >= most) return found;
      auto engine = engine_in(config);
      if (!engine) continue;
      const auto name = engine_of(config, *engine);
      if (!name || std::find(seen.begin(), seen.end(), *name) != seen.end()) continue;
      seen.push_back(*name);
      auto plan = plan_of(target, filter, std::move(config), std::move(*engine));
      if (plan)
        found.push_back(std::move(*plan));
      else if (plan.error().code == core::Errc::out_of_memory)
        return tl::unexpected(plan.error());
    }
  }
  return found;
}

core::Result<CudnnPlan> CudnnGraph::plan(const CudnnTarget& target, const CudnnFilter& filter,
                                         const CudnnEngine& engine) const {
  CudnnBuilder builder(target.library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  builder.set_descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_)
      .set_one(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, engine.index);
  if (!target.handle) builder.set_descriptor(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  auto descriptor = builder.finish();
  const auto unknown = [&](const core::Error& error) {
    return tl::unexpected(
        refused(fmt::format("{} is no engine of this operation: {}", to_string(engine), error.message)));
  };
  if (!descriptor) return unknown(descriptor.error());
  std::vector<CudnnDescriptor> choices;
  std::vector<Raw> raws;
  for (const auto& [type, value] : engine.knobs) {
    auto choice =
        CudnnBuilder(target.library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
            .set_one(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type))
            .set_one(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value)
            .finish();
    if (!choice) return unknown(choice.error());
    raws.push_back(choice->raw());
    choices.push_back(std::move(*choice));
  }
  CudnnBuilder chosen(target.library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  chosen.set_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, *descriptor);
  if (!raws.empty())
    chosen.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raws.size()),
               raws.data());
  auto config = chosen.finish();
  if (!config) return unknown(config.error());
  return plan_of(target, filter, std::move(*config), std::move(*descriptor));
}

}  // namespace troupe::gpu
