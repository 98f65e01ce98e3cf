/// Executes a server rule's actions through a port: keeps the shard's version, holds requests until the rule answers them, and
/// ensures that each is answered exactly once. A push with unusable numbers (ServerPort::usable) goes to the rule's refused(). No
/// CAF, no thread, no clock of its own. One thread.
#pragma once

#include <map>
#include <memory>

#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"
#include "strategies/host/rule.hpp"

namespace troupe::strategies {

struct ServerHostOptions {
  ShardId self = 0;
  Membership membership{};
  Version version = 0;  ///< of the shard; above 0 if it continues from the start state of a journal segment
};

/// Sums since the host began.
struct ServerTotals {
  std::uint64_t requests = 0;
  std::uint64_t replies = 0;  ///< including dropped ones
  std::uint64_t dropped = 0;
  std::uint64_t refused = 0;  ///< pushes with unusable numbers: answered, and counted in replies
};

class ServerHost {
 public:
  /// The methods throw std::logic_error for bugs, not for conditions of the run: the rule answers a request twice, not at all, or
  /// without having it; the port repeats an id, reports a version that the shard never had, or calls from inside its own call.
  ServerHost(std::unique_ptr<ServerRule> rule, ServerPort& port, ServerHostOptions options,
             ServerObserver* observer = nullptr);

  // From the server's port.
  /// `queued`: the time that the request waited in the port's queue, as far as the port knows.
  void request(const Request& request, Duration queued = Duration{0});
  void membership_changed(const Membership& membership);
  void deadline_passed(DeadlineId id);

  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }  ///< requests not answered yet
  [[nodiscard]] const ServerTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] ServerRule& rule() noexcept { return *rule_; }

 private:
  struct Open {
    Request request;
    Duration queued{0};
    Duration arrived{0};
    Version staleness = 0;
    bool worked_on = false;
    bool held = false;
    bool refused = false;
  };

  template <class Event>
  void tell(const Event& event, Duration now, bool refused = false);
  void execute(const Apply& action);
  void execute(const Reply& action);
  void execute(const Hold& action);
  void execute(const Drop& action);
  void execute(const SetDeadline& action);
  Open& opened(RequestId id);
  void answer(RequestId id, Step min_clock, bool dropped);
  void run(const KernelCall& call, RequestId request);

  std::unique_ptr<ServerRule> rule_;
  ServerPort& port_;
  ServerHostOptions options_;
  ServerObserver* observer_;
  ServerActions actions_;
  std::map<RequestId, Open> open_;
  ServerTotals totals_;
  Version version_;
  Duration now_{0};               // when handling of the present event began
  std::optional<WorkerId> last_;  // the worker of the present request
  bool telling_ = false;
};

}  // namespace troupe::strategies
