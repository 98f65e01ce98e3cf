#include "cpu/program/choices.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::cpu {
namespace {

constexpr int kPlanVersion = 1;
constexpr std::int64_t kChannelBlock = 16;
/// Padding may cost this many times the arithmetic before layouts without it are faster. GoogLeNet: 1.02, LeNet: 2.0.
constexpr double kMuchPadding = 1.25;

tl::unexpected<core::Error> refuse(const std::string& why) {
  return core::fail(core::Errc::config, fmt::format("{}{}", nn::kPlanRefused, why));
}

/// How many times as many channels a blocked layout has.
double padded(std::int64_t channels) {
  const std::int64_t blocks = (channels + kChannelBlock - 1) / kChannelBlock;
  return static_cast<double>(blocks * kChannelBlock) / static_cast<double>(channels);
}

}  // namespace

Choices Choices::by_rule(const nn::Graph& graph, nn::Precision precision) {
  Choices choices;
  choices.precision_ = precision;
  double products = 0;
  double with_padding = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const nn::Node& node = graph.nodes()[i];
    if (const auto* layer = std::get_if<nn::Conv2dLayer>(&node.layer)) {
      const std::int64_t inputs = graph.inputs_of(node).front().channels / layer->groups;
      const std::int64_t outputs = node.output.channels / layer->groups;
      // Images have few channels, and oneDNN's first convolution takes them without padding.
      const double padding = (node.inputs.front() < 0 ? 1 : padded(inputs)) * padded(outputs);
      const double own = graph.training_flops(static_cast<int>(i));
      products += own;
      with_padding += own * padding;
    }
  }
  if (with_padding > kMuchPadding * products) choices.activations_ = Activations::channels_last;
  return choices;
}

core::Result<Choices> Choices::from_plan(const nn::Plan& plan, nn::Precision precision) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  for (const char* key : {"backend", "precision", "activations"})
    if (json.is_object() && json.contains(key) && !json.at(key).is_string())
      return refuse(fmt::format("its {} is not a text", key));
  if (json.is_object() && json.contains("version") && !json.at("version").is_number_integer())
    return refuse("its version is not a number");
  if (!json.is_object() || json.value("backend", "") != "cpu") return refuse("it is not one of the cpu backend");
  if (json.value("version", 0) != kPlanVersion) return refuse(fmt::format("its version is not {}", kPlanVersion));
  // Plans of versions that computed in float32 only do not name it.
  if (const auto planned = json.value("precision", "fp32"); planned != name_of(precision))
    return refuse(fmt::format("it is for precision {}, not {}", planned, name_of(precision)));
  Choices choices;
  choices.precision_ = precision;
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

std::string_view Choices::planned(const std::string& use) const {
  const auto found = implementations_.find(use);
  return found == implementations_.end() ? std::string_view() : found->second;
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
                            {"precision", name_of(precision_)},
                            {"activations", activations_ == Activations::channels_last ? "channels_last" : "blocked"},
                            {"implementations", implementations_}};
  return {json.dump()};
}

}  // namespace troupe::cpu
