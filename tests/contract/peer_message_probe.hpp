/// The probe of peer messages: workers send each other more than they have credit for, overwrite a sent slot at once, and read messages
/// late.
#pragma once

#include <map>
#include <vector>

#include "strategies/strategy.hpp"

namespace troupe::contract {

class PeerMessageProbe final : public strategies::WorkerRule {
 public:
  void on(const strategies::Started& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::StepDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Stopped& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Replied& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::ExchangeDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::PeerMessageArrived& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::MembershipChanged& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::SendSkipped& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;

 private:
  struct Sent {
    strategies::WorkerId to = 0;
    double weight = 0;
    bool skipped = false;
    bool has_no_credit = false;  // the message before it, to the same peer, has used the credit
  };
  void write(const strategies::WorkerContext& context, strategies::WorkerActions& then);
  void read_all(strategies::WorkerActions& then);
  void look_at_skips(strategies::WorkerId self);
  void push(strategies::WorkerActions& then);

  bool here_ = false;  // u has arrived
  bool stopped_ = false;
  bool pushing_ = false;
  bool late_ = false;  // something was read since the last push began
  std::uint64_t next_push_ = 0;
  std::uint64_t next_peer_message_ = 1;
  std::vector<Sent> sent_;  // since the latest StepDone
  std::vector<strategies::PeerMessageArrived> unread_;
  std::map<strategies::WorkerId, double> latest_;  // latest weight by peer
  std::map<strategies::ShardId, strategies::Version> versions_;
};

}  // namespace troupe::contract
