/// Asynchronous successive halving (Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", algorithm 2): a trial is trained
/// to the first rung, and goes on to the next one if it is among the best floor(n / eta) of the n trials that have reached its rung so far.
/// No trial waits for a rung to fill. Not thread-safe; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::sweep {

/// The rungs for trials of `epochs`: least, least · eta, least · eta², … as long as another eta still fits, then `epochs`. REQUIRES
/// 1 ≤ least ≤ epochs, eta > 1. Ascending.
[[nodiscard]] std::vector<std::int64_t> rungs_of(std::int64_t epochs, std::int64_t least, double eta);

class Asha {
 public:
  /// `rungs` ≥ 1 of them. Fractions of trials are rounded down.
  Asha(std::size_t rungs, double eta);

  /// The trial has reached the rung. `loss`: smaller is better; infinity: it has diverged, and is never promoted. `last`: it cannot be
  /// trained further. Once per trial and rung.
  void reached(std::size_t trial, std::size_t rung, double loss, bool last = false);
  /// The trial goes on from this rung.
  void promoted(std::size_t trial, std::size_t rung);

  struct Candidate {
    std::size_t trial = 0;
    std::size_t rung = 0;  ///< that it has reached
  };
  /// The best trial that may go on, from the highest rung where there is one, and from no rung below `lowest`. `no_more_begin`: no trial will
  /// come in below; then one of each rung may go on, however few there are: at least one trial of a sweep is trained to its end.
  [[nodiscard]] std::optional<Candidate> candidate(bool no_more_begin, std::size_t lowest = 0) const;
  /// The best trial that can be trained further, whether or not it is among the best of its rung: from the highest rung where there is one,
  /// and from no rung below `lowest`.
  [[nodiscard]] std::optional<Candidate> best_left(std::size_t lowest) const;

  /// Loss and trial, best first; of equal ones the earlier trial.
  [[nodiscard]] std::vector<std::pair<double, std::size_t>> ranking(std::size_t rung) const;
  [[nodiscard]] std::size_t rungs() const noexcept { return rungs_.size(); }

 private:
  struct Entry {
    std::size_t trial = 0;
    double loss = 0;
    bool over = false;  // promoted, or cannot be
    bool promoted = false;
  };
  [[nodiscard]] std::vector<Entry> ranked(std::size_t rung) const;

  std::vector<std::vector<Entry>> rungs_;
  double eta_;
};

}  // namespace troupe::sweep
