/// The probes' server rule: its centre is its version times u (evidence.hpp). It checks the sender, order and time of each request, and
/// treats the request as protocol.hpp says: answers it, holds it and answers out of turn, or drops it.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "strategies/host/rule.hpp"

namespace troupe::contract {

class ShardProbe final : public strategies::ServerRule {
 public:
  void on(const strategies::Request& request, const strategies::ServerContext& context,
          strategies::ServerActions& then) override;
  void refused(const strategies::Request& request, const strategies::ServerContext& context,
               strategies::ServerActions& then) override;
  void on(const strategies::MembershipChanged& event, const strategies::ServerContext& context,
          strategies::ServerActions& then) override;
  void on(const strategies::DeadlinePassed& event, const strategies::ServerContext& context,
          strategies::ServerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  struct Held {
    strategies::Request request;
    bool worked_on = false;
  };
  void look_at(const strategies::Request& request, const strategies::ServerContext& context);
  void work_on(const strategies::Request& request, strategies::ServerActions& then);
  void answer(const Held& held, strategies::ShardId self, strategies::ServerActions& then);
  void release_all(strategies::ShardId self, strategies::ServerActions& then);

  strategies::Version version_ = 0;  // of the shard, during the event
  std::map<strategies::RequestId, Held> held_;
  std::map<strategies::WorkerId, strategies::ExchangeId> latest_;
  std::map<strategies::WorkerId, strategies::Step> clocks_;
  std::optional<strategies::Membership> members_;
  std::set<strategies::WorkerId> lost_;
  std::set<strategies::WorkerId> back_;  // members again, without a request so far
  std::map<strategies::DeadlineId, std::optional<strategies::Duration>>
      deadlines_;  // earliest time, where there is a clock
};

}  // namespace troupe::contract
