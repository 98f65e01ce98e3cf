/// Leases, epochs and the end, as a real run's coordinator has them: workers hold `prefetch` leases beside the one they compute, an
/// epoch ends when all its leases are done, then the model would be looked at and the next one begins; after the last one workers
/// hand in what they still hold. One thread.
#pragma once

#include <vector>

#include "data/lease.hpp"
#include "sim/world.hpp"

namespace troupe::sim {

class Coordinator {
 public:
  Coordinator(World& world, data::LeaseBook book, Duration pause);

  void train();  ///< training begins or goes on
  void asked(strategies::WorkerId worker, std::int64_t leases);
  void done(strategies::WorkerId worker, std::uint64_t lease, Duration now);
  void lost(strategies::WorkerId worker);
  void joined(strategies::WorkerId worker);
  void serve_all();        ///< leases have come back
  void quiet();            ///< event: every lease is done
  void silent();           ///< nothing is on its way any more
  void letters_arrived();  ///< of letters between workers nothing is on its way any more
  void time_is_up();
  /// The model as it is now, where numbers are computed; false when it is not finite.
  bool look_at_model();

  [[nodiscard]] bool dismissed() const noexcept { return dismissed_; }
  [[nodiscard]] const data::LeaseBook& book() const noexcept { return book_; }
  [[nodiscard]] Duration trained() const noexcept { return trained_; }  ///< pauses left out

 private:
  void serve(strategies::WorkerId worker);
  void plan_quiet(Duration now);
  void end_quiet();
  void begin_epoch();

  World& world_;
  data::LeaseBook book_;
  Duration pause_;
  std::vector<std::int64_t> wants_;  // by worker: leases asked for and not granted yet
  Duration since_{0};
  Duration trained_{0};
  bool training_ = false;
  bool quiet_planned_ = false;
  bool awaits_silence_ = false;  // the next epoch does, for newcomers' sake
  bool awaits_letters_ = false;  // the look at the model does: they belong to it
  bool stop_ = false;
  bool dismissed_ = false;
};

}  // namespace troupe::sim
