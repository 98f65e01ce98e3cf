/// Rules that follow a test's script, and ports that only record their calls.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"
#include "strategies/host/rule.hpp"

namespace troupe::strategies {

class ScriptedWorker final : public WorkerRule {
 public:
  using Script = std::function<void(const WorkerEvent&, const WorkerContext&, WorkerActions&)>;
  explicit ScriptedWorker(Script script) : script_(std::move(script)) {}
  void on(const Started& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const BucketReady& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const StepDone& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const Stopped& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const Replied& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const ExchangeDone& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const PeerMessageArrived& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const SendSkipped& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const MembershipChanged& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }
  void on(const DeadlinePassed& e, const WorkerContext& c, WorkerActions& t) override { script_(e, c, t); }

 private:
  Script script_;
};

class ScriptedServer final : public ServerRule {
 public:
  using Script = std::function<void(const ServerEvent&, const ServerContext&, ServerActions&)>;
  explicit ScriptedServer(Script script) : script_(std::move(script)) {}
  void on(const Request& e, const ServerContext& c, ServerActions& t) override { script_(e, c, t); }
  void on(const MembershipChanged& e, const ServerContext& c, ServerActions& t) override { script_(e, c, t); }
  void on(const DeadlinePassed& e, const ServerContext& c, ServerActions& t) override { script_(e, c, t); }

 private:
  Script script_;
};

/// A short name for every event, in the order in which a host delivered them.
struct EventNames final : WorkerObserver {
  void consumed(const WorkerEvent& event) override {
    static const char* const kNames[] = {"Started",           "BucketReady",   "StepDone",           "Stopped",
                                         "Replied",           "ExchangeDone",  "PeerMessageArrived", "SendSkipped",
                                         "MembershipChanged", "DeadlinePassed"};
    static_assert(std::size(kNames) == std::variant_size_v<WorkerEvent>);
    names.emplace_back(kNames[event.index()]);
    events.push_back(event);
  }
  void exchanged(const ExchangeRecord& record) override { records.push_back(record); }
  std::vector<std::string> names;
  std::vector<WorkerEvent> events;
  std::vector<ExchangeRecord> records;
};

/// All ports of a worker. `inside` runs in the middle of every send(), for ports that break the rules.
struct NotingPorts final : WorkerPort, ShardPort, GroupPort, PeerPort {
  explicit NotingPorts(ShardId shard_count = 1) : shard_count(shard_count) {}
  Duration now() const override { return clock.now(); }
  void compute(Step step) override { calls.push_back("compute " + std::to_string(step)); }
  void run(const KernelCall& call, Shards shards) override {
    kernels.push_back(call);
    calls.push_back(shards.all() ? "run"
                                 : "run on " + std::to_string(shards.first) + "+" + std::to_string(shards.count));
    clock.advance(kernel_takes);
  }
  void set_deadline(DeadlineId id, Duration) override { calls.push_back("deadline " + std::to_string(id)); }
  ShardId shards() const override { return shard_count; }
  void send(const ShardRequest& request) override {
    requests.push_back(request);
    calls.push_back("send " + std::to_string(request.shard));
    if (inside) inside();
  }
  void reduce(Step step, const Reduce& reduce) override {
    calls.push_back("reduce " + std::to_string(step) + "/" + std::to_string(reduce.id));
  }
  void broadcast(Step step, const Broadcast& broadcast) override {
    calls.push_back("broadcast " + std::to_string(step) + "/" + std::to_string(broadcast.id));
  }
  bool send(const SendPeer& message) override {
    calls.push_back("peer message to " + std::to_string(message.to));
    return credit;
  }
  void release(Slot slot) override { calls.push_back("release " + std::to_string(static_cast<int>(slot.index))); }

  ShardId shard_count;
  bool credit = true;
  Duration kernel_takes{0};
  core::ManualClock clock;
  std::function<void()> inside;
  std::vector<std::string> calls;
  std::vector<KernelCall> kernels;
  std::vector<ShardRequest> requests;
};

struct NotingServerPort final : ServerPort {
  Duration now() const override { return clock.now(); }
  bool usable(RequestId payload) const override { return std::ranges::find(bad, payload) == bad.end(); }
  void run(const KernelCall& call, RequestId payload) override {
    kernels.push_back(call);
    calls.push_back("run on " + std::to_string(payload));
    clock.advance(kernel_takes);
    if (inside) inside();
  }
  void reply(const ShardReply& reply) override {
    replies.push_back(reply);
    calls.push_back("reply " + std::to_string(reply.request));
  }
  void set_deadline(DeadlineId id, Duration) override { calls.push_back("deadline " + std::to_string(id)); }

  Duration kernel_takes{0};
  core::ManualClock clock;
  std::function<void()> inside;
  std::vector<RequestId> bad;  // requests with unusable numbers
  std::vector<std::string> calls;
  std::vector<KernelCall> kernels;
  std::vector<ShardReply> replies;
};

}  // namespace troupe::strategies
