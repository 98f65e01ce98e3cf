#include "nn/checkpoint/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/half.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "nn/checkpoint/safetensors_header.hpp"
#include "nn/checkpoint/tensors.hpp"

namespace troupe::nn {
namespace {

constexpr std::size_t kMostNamed = 4;  // differences in an error
constexpr std::string_view kCounter = ".num_batches_tracked";
constexpr std::string_view kMean = ".running_mean";
constexpr std::string_view kVariance = ".running_var";

/// One tensor of the model, and its place.
struct WantedTensor {
  const std::string* name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> older;  // as older_shape() has it
  core::Span values;
};

std::vector<WantedTensor> wanted_tensors(const Graph& graph, core::Span parameters, core::Span statistics) {
  std::vector<WantedTensor> wanted;
  std::size_t offset = 0;
  for (const auto& parameter : graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    if (offset + size > parameters.size()) throw std::invalid_argument("weights_from: too few parameters");
    wanted.push_back({&parameter.name, parameter.shape, older_shape(parameter), parameters.subspan(offset, size)});
    offset += size;
  }
  if (offset != parameters.size()) throw std::invalid_argument("weights_from: too many parameters");
  offset = 0;
  for (const auto& statistic : graph.statistics()) {
    const auto size = static_cast<std::size_t>(statistic.channels);
    if (offset + size > statistics.size()) throw std::invalid_argument("weights_from: too few statistics");
    wanted.push_back({&statistic.name, statistic.shape(), older_shape(statistic), statistics.subspan(offset, size)});
    offset += size;
  }
  return wanted;
}

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

/// Why the tensor cannot be taken; empty: it can.
std::string objection(const TensorView* found, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& older) {
  if (found == nullptr) return fmt::format("it is missing, the model needs {}", shape);
  if (found->shape != shape && found->shape != older)
    return fmt::format("its shape is {}, the model needs {}", found->shape, shape);
  if (!is_float(found->dtype))
    return fmt::format("it is {}, and weights are F32, F16 or BF16", to_string(found->dtype));
  return {};
}

void convert(const TensorView& from, core::Span out) {
  if (from.dtype == DType::f32) {
    if (!out.empty()) std::memcpy(out.data(), from.data.data(), out.size_bytes());
    return;
  }
  const auto kind = from.dtype == DType::f16 ? core::HalfKind::fp16 : core::HalfKind::bf16;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;  // its bytes need not be aligned
    std::memcpy(&half, from.data.data() + i * sizeof(half), sizeof(half));
    out[i] = core::from_half(half, kind);
  }
}

/// Prefixes of what a checkpoint has besides its model.
std::vector<std::string> state_prefixes(const SafetensorsFile& file) {
  std::vector<std::string> prefixes;
  const auto text = file.metadata().find("state");
  if (text == file.metadata().end()) return prefixes;
  std::istringstream words(text->second);
  for (std::string prefix; words >> prefix;) prefixes.push_back(prefix);
  for (auto& name : own_state_names(file)) prefixes.push_back(std::move(name));
  return prefixes;
}

/// Whether the model has the statistics that PyTorch's counter `name` belongs to.
bool counts_batches(const std::string& name, const std::set<std::string_view>& known) {
  if (!name.ends_with(kCounter)) return false;
  return known.contains(name.substr(0, name.size() - kCounter.size()) + std::string(kMean));
}

core::Result<WeightsFile> read_file(const std::string& path, const TensorSelection& selected) {
  auto file = read_selected(path, selected);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (!is_checkpoint(*file)) return WeightsFile{std::move(*file)};
  return as_checkpoint(std::move(*file)).map([](Checkpoint checkpoint) {
    return WeightsFile{std::move(checkpoint.file), checkpoint.step};
  });
}

}  // namespace

core::Result<WeightsFile> read_weights(const std::string& path, const Graph& graph) {
  std::map<std::string_view, std::array<std::vector<std::int64_t>, 2>> shapes;
  for (const auto& parameter : graph.parameters())
    shapes.insert({parameter.name, {parameter.shape, older_shape(parameter)}});
  for (const auto& statistic : graph.statistics())
    shapes.insert({statistic.name, {statistic.shape(), older_shape(statistic)}});
  return read_file(path, [&](const TensorView& tensor) {
    const auto found = shapes.find(tensor.name);
    return found != shapes.end() && objection(&tensor, found->second[0], found->second[1]).empty();
  });
}

core::Result<WeightsFile> read_weights_description(const std::string& path) {
  return read_file(path, [](const TensorView&) { return false; });
}

core::Result<TakenWeights> weights_from(const SafetensorsFile& file, const Graph& graph, core::Span parameters,
                                        core::Span statistics, Fit fit) {
  TakenWeights result;
  std::set<std::string_view> known;
  const auto wanted = wanted_tensors(graph, parameters, statistics);
  std::vector<std::pair<const TensorView*, core::Span>> fitting;
  for (const auto& tensor : wanted) {
    known.insert(*tensor.name);
    const auto* const found = file.find(*tensor.name);
    if (const auto why = objection(found, tensor.shape, tensor.older); !why.empty())
      result.kept.push_back(in_tensor(*tensor.name, why));
    else
      fitting.emplace_back(found, tensor.values);
  }
  const auto prefixes = state_prefixes(file);
  for (const auto& tensor : file.tensors()) {
    if (known.contains(tensor.name) || counts_batches(tensor.name, known)) continue;
    if (std::ranges::any_of(prefixes, [&](const auto& prefix) { return tensor.name.starts_with(prefix); })) continue;
    result.left_over.push_back(
        in_tensor(tensor.name, fmt::format("the model has none of this name ({})", tensor.shape)));
  }
  auto differences = result.kept;
  differences.insert(differences.end(), result.left_over.begin(), result.left_over.end());
  if (fit == Fit::partial ? fitting.empty() : !differences.empty())
    return core::fail(core::Errc::config, fmt::format("{}: {}", file.origin(), first_lines(differences, kMostNamed)));
  for (const auto& [found, values] : fitting) {
    if (found->data.size() != values.size() * byte_size(found->dtype))
      throw std::invalid_argument("weights_from: the file was read for another model");
    convert(*found, values);
    const auto refuse = [&, name = found->name](const std::string& why) {
      return core::fail(core::Errc::data, fmt::format("{}: {}", file.origin(), in_tensor(name, why)));
    };
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      return refuse("it has a value that is not finite");
    if (found->name.ends_with(kVariance) && std::ranges::any_of(values, [](float value) { return value < 0; }))
      return refuse("it has a variance below 0");
  }
  result.taken = fitting.size();
  return result;
}

std::string first_lines(const std::vector<std::string>& lines, std::size_t most) {
  const auto shown = std::span(lines).first(std::min(most, lines.size()));
  auto text = fmt::format("{}", fmt::join(shown, "; "));
  if (lines.size() > most) text += fmt::format("; and {} more", lines.size() - most);
  return text;
}

}  // namespace troupe::nn
