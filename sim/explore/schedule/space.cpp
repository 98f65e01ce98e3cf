#include "sim/explore/schedule/space.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace troupe::explore {
namespace {

/// Collects options as they are drawn.
class Drawing {
 public:
  Drawing(const RunShape& shape, core::Random& random) : shape_(shape), random_(random) {}

  void set(const std::string& key, const std::string& value) { options_.push_back("strategy." + key + "=" + value); }
  std::string one_of(const std::string& key, const std::vector<std::string>& values) {
    const auto& value = values[random_.below(values.size())];
    set(key, value);
    return value;
  }
  std::uint64_t number(const std::string& key, std::uint64_t low, std::uint64_t high) {
    const auto value = low + random_.below(high - low + 1);
    set(key, std::to_string(value));
    return value;
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  [[nodiscard]] const RunShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::vector<std::string> options() && { return std::move(options_); }

 private:
  RunShape shape_;
  core::Random& random_;
  std::vector<std::string> options_;
};

void bsp(Drawing& draw) {
  if (draw.shape().workers > 1 && draw.below(2) == 0) {
    draw.number("backup", 1, draw.shape().workers - 1);
  } else if (draw.one_of("combine", {"gradients", "updates", "weights"}) == "weights") {
    draw.one_of("average_momentum", {"true", "false"});
  }
}

void easgd(Drawing& draw) {
  draw.number("tau", 1, 3);
  draw.one_of("overlap", {"off", "skip", "wait"});
  switch (draw.below(4)) {
    case 0: draw.one_of("alpha", {"0.25", "0.5", "1.0"}); break;
    case 1: draw.set("alpha_worker", "0.9"), draw.set("alpha_server", "0.1"); break;
    case 2: draw.set("beta", "0.9"); break;
    default: draw.set("alpha_schedule", "[0.5, 0.125]");
  }
}

void sync_easgd(Drawing& draw) {
  draw.number("tau", 1, 3);
  draw.one_of("beta", {"0.5", "0.9", "1.0"});
}

void downpour(Drawing& draw) {
  draw.number("n_push", 1, 3);
  draw.number("n_fetch", 1, 3);
  draw.one_of("server_optimizer", {"none", "none", "sgd", "momentum", "adagrad", "adam"});
  draw.one_of("staleness_aware", {"true", "false"});
  draw.one_of("overlap", {"off", "skip"});
}

void ssp(Drawing& draw) {
  draw.number("s", 0, 3);
  draw.number("steps_per_clock", 1, 3);
  draw.one_of("overlap", {"off", "wait"});
}

void rounds(Drawing& draw) {
  const auto fragments = draw.number("fragments", 1, std::min(draw.shape().servers, 3U));
  const auto period = 1 + draw.below(3);
  draw.set("tau", std::to_string(fragments * period));
  draw.number("delay", 0, period - 1);
  if (draw.below(2) == 0) draw.number("quorum", 0, draw.shape().workers);
}

void local_sgd(Drawing& draw) {
  rounds(draw);
  draw.one_of("outer", {"sgd", "nesterov"});
}

/// Local SGD with other defaults; the outer optimizer keeps them.
void diloco(Drawing& draw) { rounds(draw); }

void mixed(Drawing& draw) {
  draw.number("group_size", 1, 3);
  const auto inner = draw.one_of("inner", {"downpour", "easgd", "ssp"});
  if (inner == "downpour") downpour(draw);
  if (inner == "easgd") draw.number("tau", 1, 3), draw.one_of("overlap", {"off", "skip", "wait"});
  if (inner == "ssp") ssp(draw);
  draw.one_of("ema", {"0", "0.9"});
}

void gossip(Drawing& draw) { draw.one_of("p", {"0.25", "0.5", "1.0"}); }
void pairs(Drawing& draw) { draw.number("tau", 1, 3); }

}  // namespace

std::vector<std::string> draw_options(std::string_view strategy, const RunShape& shape, core::Random& random) {
  static const std::map<std::string_view, void (*)(Drawing&)> kSpaces{
      {"bsp", bsp},           {"easgd", easgd},   {"eamsgd", easgd},        {"sync_easgd", sync_easgd},
      {"downpour", downpour}, {"ssp", ssp},       {"local_sgd", local_sgd}, {"diloco", diloco},
      {"mixed", mixed},       {"gossip", gossip}, {"pairs", pairs}};
  Drawing drawing(shape, random);
  if (const auto space = kSpaces.find(strategy); space != kSpaces.end()) space->second(drawing);
  return std::move(drawing).options();
}

core::OptimizerStep draw_optimizer(std::string_view strategy, core::Random& random) {
  using core::OptimizerKind;
  if (strategy == "eamsgd") return {.kind = OptimizerKind::nesterov, .lr = 0.02F, .momentum = 0.8F};
  switch (random.below(3)) {
    case 0: return {.lr = 0.05F};
    case 1: return {.lr = 0.05F, .clip_norm = 4};
    default: return {.kind = OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F};
  }
}

}  // namespace troupe::explore
