/// A shard of the centre in virtual time: the port of a ServerHost. Works on a request when it arrives, in no time.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "sim/explore/world/invariant.hpp"
#include "sim/explore/world/memory.hpp"
#include "sim/explore/world/queue.hpp"
#include "sim/explore/world/words.hpp"
#include "strategies/host/server_host.hpp"

namespace troupe::explore {

class Cluster;

using ServerKernelWatch = std::function<void(const ServerKernel&)>;

class Server final : public ServerPort, public ServerObserver {
 public:
  Server(Cluster& cluster, ShardId self, const Strategy& strategy, const Membership& membership, core::ConstSpan start);

  /// A part of an exchange has arrived. One of a worker that is no member any more, as far as the shard has heard, is not heard.
  void receive(Request request, std::shared_ptr<Parcel> payload);
  void membership_changed(const Membership& membership);

  [[nodiscard]] const ServerHost& host() const noexcept { return host_; }
  [[nodiscard]] ServerHost& host() noexcept { return host_; }
  [[nodiscard]] core::ConstSpan center() const { return memory_.peek(kCenter); }
  [[nodiscard]] core::ConstSpan peek(Slot slot) const { return memory_.peek(slot); }

  // ServerPort
  [[nodiscard]] Duration now() const override;
  /// A NaN is what somebody read that nobody had written (poison()): it is to spoil the result. Infinity is what somebody sent, or
  /// what a BadPush has put there.
  bool usable(RequestId payload) const override;
  void run(const KernelCall& call, RequestId payload) override;
  void reply(const ShardReply& reply) override;
  void set_deadline(DeadlineId id, Duration after) override;
  // ServerObserver
  void consumed(const ServerEvent& event) override;
  void dropped(const Request& request, const std::string& why) override;
  void refused(const Request& request) override;

 private:
  /// Now, or when the shard no longer stands still.
  void heard(const EventQueue::Action& what);
  void arrive(Request request, const std::shared_ptr<Parcel>& payload);
  void spoil(RequestId request);
  void mend(RequestId request, core::Span contents);

  Cluster& cluster_;
  ShardId self_;
  Memory memory_;
  std::vector<WorkerId> members_;  // ascending, as heard
  std::map<RequestId, std::shared_ptr<Parcel>> payloads_;
  std::map<RequestId, float> spoilt_;  // what stood where a BadPush is
  std::uint64_t pushes_ = 0;
  RequestId last_request_ = 0;
  Version seen_version_ = 0;
  ServerHost host_;
};

}  // namespace troupe::explore
