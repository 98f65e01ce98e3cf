#include "cpu/program/choices.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::cpu {
namespace {

constexpr int kPlanVersion = 1;
constexpr std::int64_t kChannelBlock = 16;

tl::unexpected<core::Error> refuse(const std::string& why) {
  return core::fail(core::Errc::config, fmt::format("{}{}", nn::kPlanRefused, why));
}

}  // namespace

Choices Choices::by_rule(const nn::Graph& graph) {
  Choices choices;
  std::int64_t channels = graph.input().channels;
  bool first = true;  // images have few channels, and oneDNN's first convolution takes them without padding
  for (const auto& node : graph.nodes()) {
    if (const auto* layer = std::get_if<nn::Conv2dLayer>(&node.layer)) {
      const bool padded = (!first && channels / layer->groups % kChannelBlock != 0) ||
                          node.output.channels / layer->groups % kChannelBlock != 0;
      if (padded) choices.activations_ = Activations::channels_last;
      first = false;
    }
    channels = node.output.channels;
  }
  return choices;
}

core::Result<Choices> Choices::from_plan(const nn::Plan& plan) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  if (!json.is_object() || json.value("backend", "") != "cpu") return refuse("it is not one of the cpu backend");
  if (json.value("version", 0) != kPlanVersion) return refuse(fmt::format("its version is not {}", kPlanVersion));
  Choices choices;
  const auto activations = json.value("activations", "");
  if (activations == "channels_last")
    choices.activations_ = Activations::channels_last;
  else if (activations != "blocked")
    return refuse(fmt::format("activations = \"{}\" is neither channels_last nor blocked", activations));
  const auto implementations = json.find("implementations");
  if (implementations == json.end() || !implementations->is_object()) return refuse("it has no implementations");
  for (const auto& [use, name] : implementations->items()) {
    if (!name.is_string()) return refuse(fmt::format("the implementation of {} is not a name", use));
    choices.implementations_[use] = name.get<std::string>();
  }
  return choices;
}

bool Choices::choose_own(const std::string& use, const std::string& name, bool available, bool by_rule) {
  const auto planned = implementations_.find(use);
  const bool chosen = planned == implementations_.end() ? available && by_rule : planned->second == name;
  if (chosen && !available) throw NoSuchImplementation{name};
  if (chosen) implementations_[use] = name;
  return chosen;
}

nn::Plan Choices::to_plan() const {
  const nlohmann::json json{{"backend", "cpu"},
                            {"version", kPlanVersion},
                            {"activations", activations_ == Activations::channels_last ? "channels_last" : "blocked"},
                            {"implementations", implementations_}};
  return {json.dump()};
}

}  // namespace troupe::cpu
