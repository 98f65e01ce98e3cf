/// When a checkpoint is due: after so many steps, epochs or seconds of training since the one before. Plain value; one thread.
#pragma once

#include <cstdint>

namespace troupe::coordination {

/// A reason that is 0 never comes.
struct CheckpointPeriod {
  std::int64_t epochs = 0;
  std::int64_t steps = 0;  ///< over all workers
  double seconds = 0;      ///< of training
  bool operator==(const CheckpointPeriod&) const = default;
};

class CheckpointSchedule {
 public:
  /// How far the run is, earlier sessions included.
  struct Position {
    std::uint64_t granted = 0;  ///< leases: steps done, passed over or begun
    std::int64_t epochs = 0;    ///< done
    double trained_s = 0;       ///< seconds of training
  };
  explicit CheckpointSchedule(CheckpointPeriod period) : period_(period) {}

  /// A checkpoint has the run as it is at this position. It may not be on disk yet.
  void saved(const Position& at) { saved_ = at; }
  [[nodiscard]] const Position& saved() const noexcept { return saved_; }

  [[nodiscard]] bool steps_due(std::uint64_t granted) const {
    return period_.steps > 0 && granted >= saved_.granted + static_cast<std::uint64_t>(period_.steps);
  }
  [[nodiscard]] bool time_due(double trained_s) const {
    return period_.seconds > 0 && trained_s >= saved_.trained_s + period_.seconds;
  }
  /// Epochs count only at an epoch's end.
  [[nodiscard]] bool due(const Position& at, bool epoch_done) const {
    const bool epochs = epoch_done && period_.epochs > 0 && at.epochs >= saved_.epochs + period_.epochs;
    return epochs || steps_due(at.granted) || time_due(at.trained_s);
  }

 private:
  CheckpointPeriod period_;
  Position saved_;
};

}  // namespace troupe::coordination
