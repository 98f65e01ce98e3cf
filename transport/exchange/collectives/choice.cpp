#include "transport/exchange/collectives/choice.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace troupe::exchange {

namespace {

constexpr std::size_t kLengths[] = {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20};

using Times = std::map<Algorithm, double>;

Algorithm best_of(const Times& times) {
  const auto fastest = std::ranges::min_element(times, {}, [](const auto& entry) { return entry.second; });
  const auto asa = times.find(Algorithm::asa);
  return asa != times.end() && fastest->second > kWorthIt * asa->second ? Algorithm::asa : fastest->first;
}

}  // namespace

std::vector<Algorithm> candidates(std::size_t ranks, std::span<const std::uint32_t> hosts, bool mapped) {
  std::vector<Algorithm> list{Algorithm::asa};
  if (mapped && ranks > 1) list.push_back(Algorithm::shm);
  if (ranks > 2) list.push_back(Algorithm::ring);  // with two ranks a ring is asa with more waiting
  const std::set<std::uint32_t> different(hosts.begin(), hosts.end());
  if (different.size() > 1 && different.size() < ranks) list.push_back(Algorithm::hierarchical);
  return list;
}

std::vector<std::size_t> lengths_to_measure(std::size_t most) {
  std::vector<std::size_t> lengths;
  for (const auto length : kLengths) {
    lengths.push_back(std::min(length, most));
    if (length >= most) break;
  }
  return lengths;
}

std::vector<Choice> choose(std::span<const Timing> timings) {
  std::map<std::size_t, Times> by_length;
  for (const auto& timing : timings) by_length[timing.floats][timing.algorithm] = timing.seconds;
  std::vector<Choice> choices;
  std::size_t shorter = 0;
  for (const auto& [floats, times] : by_length) {
    const auto best = best_of(times);
    if (choices.empty() || choices.back().algorithm != best) {
      if (!choices.empty())
        choices.back().up_to_floats =
            static_cast<std::size_t>(std::sqrt(static_cast<double>(shorter) * static_cast<double>(floats)));
      choices.push_back({{}, best});
    }
    shorter = floats;
  }
  if (choices.empty()) choices.push_back({});
  return choices;
}

std::string describe(std::span<const Choice> choices, std::span<const Timing> timings) {
  std::string text;
  for (const auto& choice : choices) {
    text += fmt::format("{}{}", text.empty() ? "" : ", then ", name(choice.algorithm));
    if (choice.up_to_floats) text += fmt::format(" up to {} floats", *choice.up_to_floats);
  }
  std::string measured;
  std::size_t floats = 0;
  for (const auto& timing : timings) {
    if (measured.empty() || timing.floats != floats)
      measured += fmt::format("{}{} floats: ", measured.empty() ? "" : "; ", timing.floats);
    else
      measured += ", ";
    measured += fmt::format("{} {:.3g} ms", name(timing.algorithm), timing.seconds * 1e3);
    floats = timing.floats;
  }
  return measured.empty() ? text : fmt::format("{} ({})", text, measured);
}

}  // namespace troupe::exchange
