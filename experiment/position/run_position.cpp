#include "experiment/position/run_position.hpp"

#include <algorithm>

namespace troupe::experiment {

std::optional<double> ledger_position(double epoch, double size, double omitted, double finished) {
  // What an epoch leaves out (data.drop_tail) is no part of it.
  const double whole = size - omitted;
  if (!(epoch >= 0 && whole > 0 && finished >= 0 && finished <= whole)) return {};
  return epoch + finished / whole;
}

void RunPosition::start(double epochs_done, double samples_of_epoch, double epochs_of_run) {
  *this = {.begun = epochs_done,
           .epoch_samples = samples_of_epoch,
           .epochs = epochs_of_run,
           .known = {.epochs = epochs_done, .computed = 0}};
}

void RunPosition::learn(double epochs_done, double computed) {
  if (computed >= known.computed && epochs_done >= known.epochs) known = {epochs_done, computed};
}

double RunPosition::samples_per_epoch() const {
  const double done = known.epochs - begun;
  return done > 0 && known.computed > 0 ? known.computed / done : epoch_samples;
}

double RunPosition::after(double computed) const {
  const double done = known.epochs + std::max(computed - known.computed, 0.0) / samples_per_epoch();
  return epochs > 0 ? std::min(done, epochs) : done;
}

}  // namespace troupe::experiment
