/// A sweep as a state machine: results in, next steps out. It begins trials with the points that its method suggests, and lets the best go on
/// from rung to rung. Its decisions depend on its options and on the order of begin(), ended() and next() alone: a sweep that reads them
/// back from its record goes on as if it had not been interrupted. No clock, no process, no file. Not thread-safe.
///
/// A budget of epochs: a trial begins or goes on only if it could be trained to its end with what is left. So the budget is never exceeded,
/// and suffices for a whole run at every moment, unless the trial that it is kept for diverges. A run that diverges counts with what it has
/// trained. When no trial can begin any more, the rest goes to the best trials whose ends it suffices for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/sweep/asha.hpp"
#include "experiment/sweep/space.hpp"
#include "experiment/sweep/tpe.hpp"

namespace troupe::sweep {

enum class Method : std::uint8_t { random, tpe };

struct SearchOptions {
  Method method = Method::tpe;
  std::vector<std::int64_t> rungs{
      1};  ///< epochs, ascending; the last one is the whole run. One rung: no run is stopped early
  double eta = 3;
  bool higher_is_better = true;
  std::size_t trials = 0;   ///< that are begun at most; 0: no limit
  std::int64_t epochs = 0;  ///< that are trained at most, over all trials; 0: no limit
  double least =
      0.05;  ///< of a step's epochs that a diverged trial counts with at least: where all diverge at once, the budget ends, too
  double finish = 0.25;  ///< the share of `epochs` in which no trial begins: the best ones go to their ends
  std::uint64_t seed = 1;
  TpeOptions tpe{};
};

/// A trial is to be trained to a rung.
struct Step {
  std::size_t trial = 0;
  std::size_t rung = 0;  ///< 0: the trial begins; otherwise it resumes
  bool operator==(const Step&) const = default;
};

class Search {
 public:
  Search(Space space, SearchOptions options);

  /// The next step, which is under way from now on; none: none before another result, or at all.
  [[nodiscard]] std::optional<Step> next();
  /// A recorded step is under way: in place of next(). `point`: of a trial that begins. False, and no effect: it does not follow from what
  /// was recorded before, or the space does not contain the point.
  [[nodiscard]] bool begin(const Step& step, const Point& point);

  struct Result {
    std::optional<double> score;             ///< none: diverged
    bool last = false;                       ///< the run has ended by itself, and cannot be trained further
    std::optional<double> diverged_after{};  ///< epochs in all, of a run that diverged; none: those of the rung
  };
  /// The step is over. REQUIRES that it is under way. result.diverged_after counts within the step's own epochs.
  void ended(const Step& step, const Result& result);
  /// The run of the step has failed and is left out: the trial does not go on, and its point is not suggested again. REQUIRES that it
  /// is under way.
  void failed(const Step& step);

  struct Trial {
    Point point;
    std::optional<std::size_t> under_way;         ///< the rung that it trains to
    std::vector<std::optional<double>> scores{};  ///< by rung reached; none: diverged
    bool failed = false;
    std::optional<double> diverged_after{};  ///< epochs in all, where it diverged before its rung
  };
  [[nodiscard]] const std::vector<Trial>& trials() const noexcept { return trials_; }
  [[nodiscard]] const Space& space() const noexcept { return space_; }
  [[nodiscard]] const SearchOptions& options() const noexcept { return options_; }
  /// Nothing is under way, and next() has nothing.
  [[nodiscard]] bool finished() const;
  /// Over all trials. A trial counts to the rung that it has reached or trains to; a diverged one with what it had trained (see
  /// SearchOptions::least), or with its rung where that is unknown; a failed one not at all.
  [[nodiscard]] double epochs() const;
  /// Trials with a result: those of the highest rung first, each rung's best first; diverged ones last in theirs. Successive halving sends
  /// the best of each rung to the next one, so this is the order of what is known.
  [[nodiscard]] std::vector<std::size_t> ranking() const;

 private:
  /// What next() does, without the point of a trial that begins.
  [[nodiscard]] std::optional<Step> decided() const;
  [[nodiscard]] bool has_points_left() const;
  /// Epochs that a trial counts with at least that has diverged on the way to `rung`.
  [[nodiscard]] double least_after(std::size_t rung) const;
  [[nodiscard]] Point suggestion() const;
  [[nodiscard]] double loss_of(const Result& result) const;

  Space space_;
  SearchOptions options_;
  std::optional<double> points_;  // of the space
  Asha asha_;
  std::vector<Trial> trials_;
  std::size_t under_way_ = 0;
};

}  // namespace troupe::sweep
