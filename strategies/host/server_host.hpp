/// Executes a server half's actions through a port: keeps the shard's version, holds requests until the half lets them go,
/// makes sure that each one is answered exactly once, and that a push with numbers that cannot be used (ServerPort::usable) is told to
/// the half as refused(). No CAF, no thread, no clock of its own. One thread.
#pragma once

#include <map>
#include <memory>

#include "strategies/host/half.hpp"
#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"

namespace troupe::strategies {

struct ServerHostOptions {
  ShardId self = 0;
  Membership membership{};
  Version version = 0;  ///< of the shard as it is: above 0 when it continues from a journal segment's start state
};

/// Sums since the host began.
struct ServerTotals {
  std::uint64_t requests = 0;
  std::uint64_t replies = 0;  ///< dropped ones included
  std::uint64_t dropped = 0;
  std::uint64_t refused = 0;  ///< pushes with numbers that cannot be used: answered, and counted in replies
};

class ServerHost {
 public:
  /// Throws std::logic_error when the half answers a request twice, not at all, or one that it does not have, and when the
  /// port repeats an id, claims a version that the shard never had, or calls from inside its own call: bugs, not conditions of
  /// the run.
  ServerHost(std::unique_ptr<ServerHalf> half, ServerPort& port, ServerHostOptions options,
             ServerObserver* observer = nullptr);

  // From the server's port.
  /// `queued`: how long the request lay in the port's queue, as far as the port knows.
  void request(const Request& request, Duration queued = Duration{0});
  void membership_changed(const Membership& membership);
  void deadline_passed(DeadlineId id);

  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }  ///< requests not answered yet
  [[nodiscard]] const ServerTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] ServerHalf& half() noexcept { return *half_; }

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

  std::unique_ptr<ServerHalf> half_;
  ServerPort& port_;
  ServerHostOptions options_;
  ServerObserver* observer_;
  ServerActions actions_;
  std::map<RequestId, Open> open_;
  ServerTotals totals_;
  Version version_;
  Duration now_{0};               // when the event being handled began
  std::optional<WorkerId> last_;  // whose request it is
  bool telling_ = false;
};

}  // namespace troupe::strategies
