#include "core/affinity/machine.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "core/text/plural.hpp"

namespace troupe::core {
namespace {

/// "8 cores", or "4-8 cores".
std::string counted(const std::vector<std::size_t>& counts, std::string_view noun_of_one) {
  const auto [least, most] = std::ranges::minmax(counts);
  return least == most ? core::counted(most, noun_of_one)
                       : fmt::format("{}-{} {}", least, most, noun(most, noun_of_one));
}

}  // namespace

std::string to_text(std::span<const unsigned> cpus) {
  if (cpus.empty()) return "none";
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    auto last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
    first = last + 1;
  }
  return text;
}

Cpus common(const Cpus& a, const Cpus& b) {
  Cpus both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

std::string describe(const Machine& machine) {
  if (machine.cores.empty()) return "no cores";
  std::map<unsigned, std::size_t> nodes;
  std::vector<std::size_t> threads;
  for (const auto& one : machine.cores) {
    ++nodes[one.node];
    threads.push_back(one.cpus.size());
  }
  std::vector<std::size_t> cores;
  for (const auto& [node, count] : nodes) cores.push_back(count);
  return fmt::format("{} × {} × {}", core::counted(nodes.size(), "memory node"), counted(cores, "core"),
                     counted(threads, "hardware thread"));
}

}  // namespace troupe::core
