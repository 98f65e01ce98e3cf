#include "sim/explore/world/fault.hpp"

#include <array>
#include <cstdio>

namespace troupe::explore {
namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::string span(Duration at, Duration lasts) { return "from " + milliseconds(at) + " for " + milliseconds(lasts); }

std::string the(std::uint64_t nth, Traffic traffic) {
  return "transmission " + std::to_string(nth) + " of a " + name(traffic);
}

struct FaultText {
  std::string operator()(const SlowWorker& i) const {
    return "worker " + std::to_string(i.worker) + " takes " + number(i.factor) + " times as long for its steps";
  }
  std::string operator()(const SlowShard& i) const {
    return "messages of shard " + std::to_string(i.shard) + " take " + number(i.factor) + " times as long";
  }
  std::string operator()(const Pause& i) const {
    return (i.shard ? "shard " : "worker ") + std::to_string(i.member) + " stands still " + span(i.at, i.lasts);
  }
  std::string operator()(const Loss& i) const {
    return "worker " + std::to_string(i.worker) + " is lost at " + milliseconds(i.at) +
           (i.in_exchange ? " or in its next exchange" : "") +
           (i.replaced_after ? ", and replaced after " + milliseconds(*i.replaced_after) : "");
  }
  std::string operator()(const Starvation& i) const {
    return std::string("no ") + name(i.traffic) + " arrives " + span(i.at, i.lasts);
  }
  std::string operator()(const NewestFirst& i) const {
    return std::string("in every ") + milliseconds(i.window) + " the newest " + name(i.traffic) + " arrives first";
  }
  std::string operator()(const Bursts& i) const { return "messages arrive every " + milliseconds(i.period) + " only"; }
  std::string operator()(const LostTransmission& i) const { return the(i.nth, i.traffic) + " is dropped"; }
  std::string operator()(const DoubledTransmission& i) const { return the(i.nth, i.traffic) + " arrives twice"; }
  std::string operator()(const LostPeerMessage& i) const {
    return "peer message " + std::to_string(i.nth) + " is lost for good";
  }
  std::string operator()(const BadPush& i) const {
    return "push " + std::to_string(i.nth) + " to shard " + std::to_string(i.shard) + " cannot be used";
  }
};

}  // namespace

const char* name(Traffic traffic) noexcept {
  static constexpr std::array<const char*, 7> kNames{
      "request", "reply", "collective's end", "peer message", "credit", "membership notice", "acknowledgement"};
  return kNames.at(static_cast<std::size_t>(traffic));
}

std::string milliseconds(Duration time) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.6f ms", static_cast<double>(time.count()) / 1e6);
  return text.data();
}

std::string to_text(const Fault& fault) { return std::visit(FaultText{}, fault); }

}  // namespace troupe::explore
