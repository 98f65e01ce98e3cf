/// How far a run is over time, in a bounded number of points: when they are full, every second one is dropped. A value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::service {

/// Since the session began: seconds of its time, samples, steps of all workers.
struct Moment {
  double t = 0, samples = 0, steps = 0;
};

class Moments {
 public:
  static constexpr std::size_t kMost = 400;

  /// Times never go back; a moment that does is left out, and so is one that is too near to the last one kept. The latest is always known.
  void add(const Moment& moment);
  [[nodiscard]] std::vector<Moment> all() const;
  [[nodiscard]] bool empty() const noexcept { return !latest_; }
  [[nodiscard]] const Moment& latest() const { return *latest_; }

 private:
  std::vector<Moment> kept_;
  std::optional<Moment> latest_;
  double gap_ = 0;  // [s] between two that are kept
};

/// The moment at `t`, between its neighbours; nothing: `t` is behind the last one. REQUIRES that times grow.
[[nodiscard]] std::optional<Moment> moment_at(const std::vector<Moment>& moments, double t);
/// When so many samples were reached; nothing: they were not.
[[nodiscard]] std::optional<double> time_of_samples(const std::vector<Moment>& moments, double samples);

}  // namespace troupe::service
