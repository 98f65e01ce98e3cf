#include "apps/reports/step_breakdown.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace troupe::apps {
namespace {

/// The operations that share a line.
struct Line {
  std::string name;
  std::string computed_by;  // the implementation of the longest operation
  double longest = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;

  void add(const cpu::OperationTime& operation) {
    seconds += operation.seconds;
    flops += operation.flops;
    bytes += operation.bytes;
    if (operation.seconds < longest) return;
    longest = operation.seconds;
    computed_by = operation.implementation.empty() ? operation.what : operation.implementation;
  }
};

std::string_view name_of(cpu::StepPart part) {
  constexpr std::array names{"refresh", "forward", "backward"};
  return names[static_cast<std::size_t>(part)];
}

/// "pooling backward"; the names of some operations have their part already.
std::string operation_kind(const cpu::OperationTime& operation) {
  const auto part = name_of(operation.part);
  return operation.what.ends_with(part) ? operation.what : fmt::format("{} {}", operation.what, part);
}

double total_seconds(const cpu::Breakdown& breakdown) {
  double total = breakdown.loss_seconds + breakdown.optimizer_seconds;
  for (const auto& operation : breakdown.operations) total += operation.seconds;
  return total;
}

/// Lines by `name(operation)`, the longest first.
template <class Name>
std::vector<Line> lines_by(const cpu::Breakdown& breakdown, const Name& name) {
  std::map<std::string, Line> lines;
  for (const auto& operation : breakdown.operations) {
    Line& line = lines[name(operation)];
    line.add(operation);
  }
  std::vector<Line> sorted;
  for (auto& [key, line] : lines) {
    line.name = key;
    sorted.push_back(std::move(line));
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &Line::seconds);
  return sorted;
}

/// Arithmetic against its ceiling for products, traffic against its own for everything else.
std::string speed(const Line& line, const cpu::Ceilings& ceilings) {
  if (line.seconds <= 0) return "";
  if (line.flops > 0) {
    const double rate = line.flops / line.seconds / 1e9;
    return fmt::format("{:7.1f} GFLOP/s {:4.0f} %", rate, 100 * rate / ceilings.gflops);
  }
  const double rate = line.bytes / line.seconds / 1e9;
  return fmt::format("{:7.1f} GB/s    {:4.0f} %", rate, 100 * rate / ceilings.gb_per_s);
}

std::string row(const Line& line, double total, const cpu::Ceilings& ceilings) {
  return fmt::format("  {:9.3f} ms {:5.1f} %  {:22}  {:36}  {}\n", 1e3 * line.seconds, 100 * line.seconds / total,
                     speed(line, ceilings), line.name, line.computed_by);
}

}  // namespace

std::string breakdown_text(const cpu::Breakdown& breakdown, const cpu::Ceilings& ceilings, std::size_t most) {
  const double total = total_seconds(breakdown);
  std::string text = fmt::format(
      "This machine reaches {:.0f} GFLOP/s in a direct convolution of a good shape and moves {:.1f} GB/s. Winograd's "
      "algorithm has fewer multiplications, and values in a cache move faster: both may pass 100 %.\n",
      ceilings.gflops, ceilings.gb_per_s);
  const auto layers = lines_by(
      breakdown, [](const auto& operation) { return fmt::format("{} {}", operation.layer, name_of(operation.part)); });
  for (std::size_t i = 0; i < std::min(most, layers.size()); ++i) text += row(layers[i], total, ceilings);
  if (layers.size() > most) {
    double rest = 0;
    for (std::size_t i = most; i < layers.size(); ++i) rest += layers[i].seconds;
    text += fmt::format("  {:9.3f} ms {:5.1f} %  in {} more lines (--json has all)\n", 1e3 * rest, 100 * rest / total,
                        layers.size() - most);
  }
  text += "By kind:\n";
  for (const Line& line : lines_by(breakdown, operation_kind)) text += row(line, total, ceilings);
  text += fmt::format("  {:9.3f} ms {:5.1f} %  {:22}  loss\n  {:9.3f} ms {:5.1f} %  {:22}  optimizer\n",
                      1e3 * breakdown.loss_seconds, 100 * breakdown.loss_seconds / total, "",
                      1e3 * breakdown.optimizer_seconds, 100 * breakdown.optimizer_seconds / total, "");
  return text;
}

nlohmann::ordered_json breakdown_json(const cpu::Breakdown& breakdown, const cpu::Ceilings& ceilings) {
  auto operations = nlohmann::ordered_json::array();
  for (const auto& operation : breakdown.operations)
    operations.push_back({{"layer", operation.layer},
                          {"part", name_of(operation.part)},
                          {"what", operation.what},
                          {"implementation", operation.implementation},
                          {"ms", 1e3 * operation.seconds},
                          {"flops", operation.flops},
                          {"bytes", operation.bytes}});
  return {{"steps", breakdown.steps},
          {"ceiling_gflops", ceilings.gflops},
          {"ceiling_gb_per_s", ceilings.gb_per_s},
          {"loss_ms", 1e3 * breakdown.loss_seconds},
          {"optimizer_ms", 1e3 * breakdown.optimizer_seconds},
          {"operations", std::move(operations)}};
}

}  // namespace troupe::apps
