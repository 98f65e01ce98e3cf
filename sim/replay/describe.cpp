#include "sim/replay/describe.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::replay {

namespace {

using namespace strategies;

std::string words(const Started& e) { return fmt::format("Started at step {}", e.step); }
std::string words(const BucketReady& e) { return fmt::format("BucketReady {} of step {}", e.bucket, e.step); }
std::string words(const StepDone& e) {
  return fmt::format("StepDone {} (epoch {:.6g}, lr {:g}, momentum {:g}, t {})", e.step, e.epoch, e.optimizer.lr,
                     e.optimizer.momentum, e.optimizer.t);
}
std::string words(const Stopped& e) { return fmt::format("Stopped at step {}", e.step); }
std::string words(const Replied& e) {
  return fmt::format("Replied: exchange {} by shard {}, version {}, minimum clock {}", e.exchange, e.shard, e.version,
                     e.min_clock);
}
std::string words(const ExchangeDone& e) {
  return fmt::format("ExchangeDone {}{}", e.exchange, e.dropped ? ", dropped" : "");
}
std::string words(const PeerMessageArrived& e) {
  return fmt::format("PeerMessageArrived from worker {}, weight {:.17g}", e.from, e.weight);
}
std::string words(const SendSkipped& e) {
  return fmt::format("SendSkipped to worker {}, weight {:.17g}", e.to, e.weight);
}
std::string words(const MembershipChanged& e) {
  return fmt::format("MembershipChanged {}: workers {}", e.membership.epoch, fmt::join(e.membership.workers, ", "));
}
std::string words(const DeadlinePassed& e) { return fmt::format("DeadlinePassed {}", e.id); }
std::string words(const Request& e) {
  static constexpr std::array kKinds{"push", "pull", "push and pull"};
  return fmt::format("Request {}: {} of worker {}, exchange {}, clock {}, version {}, lr {:g}", e.id,
                     kKinds.at(static_cast<std::size_t>(e.kind)), e.worker, e.exchange, e.clock, e.version, e.lr);
}

}  // namespace

std::string describe(const WorkerEvent& event) {
  return std::visit([](const auto& e) { return words(e); }, event);
}
std::string describe(const ServerEvent& event) {
  return std::visit([](const auto& e) { return words(e); }, event);
}
std::string describe(const experiment::SnapshotRecord& snapshot) {
  return fmt::format("snapshot of {}, hash {:016x}", describe(snapshot.slot), snapshot.hash);
}

std::string member_name(bool server, std::uint32_t member) {
  return fmt::format("{}{}", server ? "server" : "worker", member);
}

std::string describe(Slot slot) {
  static constexpr std::array kNames{"params", "grads",      "velocity", "acc",   "anchor",
                                     "staged", "statistics", "center",   "state", "payload"};
  const auto* name = kNames.at(static_cast<std::size_t>(slot.kind));
  return slot.index == 0 ? name : fmt::format("{}[{}]", name, slot.index);
}

}  // namespace troupe::replay
