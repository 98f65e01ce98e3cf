#include "sim/explore/event_log.hpp"

#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

std::string text(std::uint64_t number) { return std::to_string(number); }
std::string worker(WorkerId id) { return "worker " + text(id); }
std::string shard(ShardId id) { return "shard " + text(id); }

std::string members(const Membership& membership) {
  std::string all = "members are now";
  for (const auto id : membership.workers) all.append(1, ' ').append(text(id));
  return all;
}

struct EventText {
  std::string operator()(const Started& e) const { return "started at step " + text(e.step); }
  std::string operator()(const BucketReady& e) const {
    return "bucket " + text(static_cast<std::uint64_t>(e.bucket)) + " of step " + text(e.step) + " is ready";
  }
  std::string operator()(const StepDone& e) const { return "step " + text(e.step) + " is done"; }
  std::string operator()(const Stopped& e) const { return "stopped after " + text(e.step) + " steps"; }
  std::string operator()(const Replied& e) const {
    return shard(e.shard) + " replied to exchange " + text(e.exchange) + ", version " + text(e.version) +
           ", minimum clock " + text(e.min_clock);
  }
  std::string operator()(const ExchangeDone& e) const {
    return "exchange " + text(e.exchange) + (e.dropped ? " is dropped" : " is done");
  }
  std::string operator()(const PeerMessageArrived& e) const {
    return "peer message from " + worker(e.from) + ", weight " + std::to_string(e.weight);
  }
  std::string operator()(const SendSkipped& e) const { return "no credit towards " + worker(e.to); }
  std::string operator()(const MembershipChanged& e) const { return members(e.membership); }
  std::string operator()(const DeadlinePassed& e) const { return "deadline " + text(e.id) + " has passed"; }
  std::string operator()(const Request& e) const {
    static const char* const kKinds[] = {"push", "pull", "push and pull"};
    return std::string(kKinds[static_cast<std::size_t>(e.kind)]) + " of " + worker(e.worker) + ", exchange " +
           text(e.exchange) + ", clock " + text(e.clock) + ", seen version " + text(e.version);
  }
};

}  // namespace

std::string to_text(const WorkerEvent& event) { return std::visit(EventText{}, event); }
std::string to_text(const ServerEvent& event) { return std::visit(EventText{}, event); }

void EventLog::add(const VirtualRun& run, const std::string& who, const std::string& what) {
  lines_.push_back(milliseconds(run.now()) + "  " + who + ": " + what);
}

void EventLog::step_begins(const VirtualRun& run, const StepBegins& begins) {
  add(run, worker(begins.worker), "begins step " + text(begins.step) + " with lease " + text(begins.lease));
}
void EventLog::told(const VirtualRun& run, WorkerId id, const WorkerEvent& event) {
  add(run, worker(id), to_text(event));
}
void EventLog::told(const VirtualRun& run, ShardId id, const ServerEvent& event) {
  add(run, shard(id), to_text(event));
}
void EventLog::dropped(const VirtualRun& run, ShardId id, const Request& request) {
  add(run, shard(id), "drops exchange " + text(request.exchange) + " of " + worker(request.worker));
}
void EventLog::refused(const VirtualRun& run, ShardId id, const Request& request) {
  add(run, shard(id), "refuses exchange " + text(request.exchange) + " of " + worker(request.worker));
}

}  // namespace troupe::explore
