/// Leases, epochs and the end of the run, as a real coordinator handles them. A worker holds `prefetch` leases beside the one that it
/// computes. An epoch ends when all its leases are done; then the model is evaluated and the next epoch begins. After the last epoch the
/// workers hand in what they still hold. One thread.
#pragma once

#include <vector>

#include "data/lease.hpp"
#include "sim/world.hpp"

namespace troupe::sim {

class Coordinator {
 public:
  Coordinator(World& world, data::LeaseScheduler book, Duration pause);

  void train();  ///< training begins or continues
  void asked(strategies::WorkerId worker, std::int64_t leases);
  void done(strategies::WorkerId worker, std::uint64_t lease, Duration now);
  void lost(strategies::WorkerId worker);
  void joined(strategies::WorkerId worker);
  void serve_all();              ///< leases have returned
  void quiet();                  ///< event: every lease is done
  void silent();                 ///< no packet is in flight
  void peer_messages_arrived();  ///< no peer message is in flight
  void time_is_up();
  /// Evaluates the current model, where gradients are computed. False when it is not finite.
  bool look_at_model();

  [[nodiscard]] bool dismissed() const noexcept { return dismissed_; }
  [[nodiscard]] const data::LeaseScheduler& book() const noexcept { return book_; }
  [[nodiscard]] Duration trained() const noexcept { return trained_; }  ///< without pauses

 private:
  void serve(strategies::WorkerId worker);
  void plan_quiet(Duration now);
  void end_quiet();
  void begin_epoch();

  World& world_;
  data::LeaseScheduler book_;
  Duration pause_;
  std::vector<std::int64_t> wants_;  // by worker: leases requested, not yet granted
  Duration since_{0};
  Duration trained_{0};
  bool training_ = false;
  bool quiet_planned_ = false;
  bool awaits_silence_ = false;        // the next epoch waits so that newcomers can join
  bool awaits_peer_messages_ = false;  // the evaluation waits: peer messages are part of the model
  bool stop_ = false;
  bool dismissed_ = false;
};

}  // namespace troupe::sim
