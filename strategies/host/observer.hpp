/// Observers of a host: the journal of consumed events, and one record per exchange, from which the histograms for users are made.
/// Called on the host's thread, in order. An implementation only stores the data and returns.
#pragma once

#include "strategies/host/events.hpp"

namespace troupe::strategies {

enum class ExchangeOutcome : std::uint8_t { applied, dropped, skipped };

/// One exchange of a worker with all its shards, one collective, or one message to a peer.
struct ExchangeRecord {
  WorkerId worker = 0;
  Step step = 0;  ///< steps completed when the exchange began
  ExchangeId exchange = 0;
  Duration blocked{0};        ///< time in which the worker stood still for it
  Duration wait{0};           ///< the part of `blocked` that was waiting for others
  Duration transfer{0};       ///< from sending to the last answer
  Version staleness_max = 0;  ///< over the shards, in versions of the centre
  Version staleness_sum = 0;
  std::uint32_t updates = 0;  ///< shards that applied it; 0 for a pull
  Step delay = 0;             ///< steps between sending and applying (overlap)
  ExchangeOutcome outcome = ExchangeOutcome::applied;
};

class WorkerObserver {
 public:
  virtual ~WorkerObserver() = default;
  virtual void consumed(const WorkerEvent& event) = 0;
  virtual void exchanged(const ExchangeRecord& record) = 0;
};

class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void consumed(const ServerEvent& event) = 0;
  virtual void dropped(const Request& request, const std::string& why) = 0;
  /// The push of `request` contained unusable numbers. `consumed` receives the request like any other.
  virtual void refused(const Request& request) = 0;
};

}  // namespace troupe::strategies
