/// A server in a replay: the port of its ServerHost, driven by the recorded events of the server. One thread.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "sim/replay/segment.hpp"
#include "strategies/host/server_host.hpp"

namespace troupe::replay {

class ReplayServer final : public strategies::ServerPort, public strategies::ServerObserver {
 public:
  ReplayServer(Segment& segment, strategies::ShardId self, std::vector<ServerItem> items,
               experiment::ShardMemory memory, strategies::Version version);

  /// Restores the rule's state when a segment begins in the middle of a run. Errc::corrupt.
  [[nodiscard]] core::Result<void> take_up(const std::string& rule_state) { return host_.rule().restore(rule_state); }
  /// Consumes the next item if its inputs are there. Throws Diverged, also for items that no run can have recorded.
  [[nodiscard]] bool advance();
  [[nodiscard]] bool at_end() const noexcept { return next_ == items_.size(); }
  [[nodiscard]] std::size_t consumed() const noexcept { return next_; }
  [[nodiscard]] const std::vector<ServerItem>& items() const noexcept { return items_; }
  [[nodiscard]] std::string waits_for() const;
  /// The worker whose request comes next; nothing: none does.
  [[nodiscard]] std::optional<strategies::WorkerId> needs() const;

  /// A worker's part of an exchange; kept until the recording says that the server handled it.
  void sent(const strategies::ShardRequest& request, const experiment::BorrowedView& slice);
  [[nodiscard]] experiment::ShardMemory& memory() noexcept { return memory_; }

  // strategies::ServerPort
  [[nodiscard]] core::Duration now() const override { return core::Duration{0}; }
  bool usable(strategies::RequestId payload) const override;
  void run(const strategies::KernelCall& call, strategies::RequestId payload) override;
  void reply(const strategies::ShardReply& reply) override;
  void set_deadline(strategies::DeadlineId, core::Duration) override {}
  // strategies::ServerObserver
  void consumed(const strategies::ServerEvent& event) override;
  void dropped(const strategies::Request&, const std::string&) override {}
  void refused(const strategies::Request&) override {}

 private:
  struct Sent {
    strategies::Request request;
    experiment::BorrowedView slice;  // the worker's
    experiment::BorrowedView here;   // the vector at the server: that slice, or its copy after the wire
    core::Rounding rounding;
  };
  [[nodiscard]] bool travels(const strategies::Request& request) const;
  [[nodiscard]] Position position() const;
  [[nodiscard]] bool take_item();
  [[nodiscard]] bool feed(const strategies::Request& event);
  [[nodiscard]] bool feed(const strategies::MembershipChanged& event);
  [[nodiscard]] bool feed(const strategies::DeadlinePassed& event);
  [[noreturn]] void diverge(std::size_t item, const std::string& what) const;

  Segment& segment_;
  strategies::ShardId self_;
  std::vector<ServerItem> items_;
  std::size_t next_ = 0;
  experiment::ShardMemory memory_;
  std::map<std::pair<strategies::WorkerId, strategies::ExchangeId>, std::deque<Sent>> sent_;
  std::map<strategies::RequestId, Sent> payloads_;  // of requests that it has handled
  strategies::ServerHost host_;
};

}  // namespace troupe::replay
