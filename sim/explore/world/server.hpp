/// A shard of the centre in virtual time: the port of a ServerHost. Handles a request on arrival, in no time.
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

class VirtualRun;
class Worker;

using ServerKernelWatch = std::function<void(const ServerKernel&)>;

class Server final : public ServerPort, public ServerObserver {
 public:
  Server(VirtualRun& run, ShardId self, const Strategy& strategy, const Membership& membership, core::ConstSpan start);

  /// Receives a part of an exchange, whose reply goes to `from`. Ignores it if the shard knows that this worker is no member any more.
  void receive(Request request, std::shared_ptr<Parcel> payload, Worker& from);
  /// `lives`: of each rank.
  void membership_changed(const Membership& membership, const std::vector<std::uint32_t>& lives);

  [[nodiscard]] const ServerHost& host() const noexcept { return host_; }
  [[nodiscard]] ServerHost& host() noexcept { return host_; }
  [[nodiscard]] core::ConstSpan center() const { return memory_.peek(kCenter); }
  [[nodiscard]] core::ConstSpan peek(Slot slot) const { return memory_.peek(slot); }

  // ServerPort
  [[nodiscard]] Duration now() const override;
  /// Infinity is unusable: a peer sent it, or a BadPush. NaN counts as usable: it marks a read of unwritten memory (poison()) and must
  /// spoil the result.
  bool usable(RequestId payload) const override;
  void run(const KernelCall& call, RequestId payload) override;
  void reply(const ShardReply& reply) override;
  void set_deadline(DeadlineId id, Duration after) override;
  // ServerObserver
  void consumed(const ServerEvent& event) override;
  void dropped(const Request& request, const std::string& why) override;
  void refused(const Request& request) override;

 private:
  /// Runs `what` now, or at the end of the shard's pause.
  void heard(const EventQueue::Action& what);
  void arrive(Request request, const std::shared_ptr<Parcel>& payload, Worker& from);
  [[nodiscard]] bool is_member(const Worker& worker, WorkerId rank) const;
  void spoil(RequestId request);
  void mend(RequestId request, core::Span contents);

  VirtualRun& run_;
  ShardId self_;
  Memory memory_;
  std::map<WorkerId, std::uint32_t> members_;  // as the shard knows them, with the life of each
  std::map<RequestId, std::shared_ptr<Parcel>> payloads_;
  std::map<RequestId, Worker*> senders_;
  std::map<RequestId, float> spoilt_;  // values that a BadPush replaced
  std::uint64_t pushes_ = 0;
  RequestId last_request_ = 0;
  Version seen_version_ = 0;
  ServerHost host_;
};

}  // namespace troupe::explore
