/// What a grid file with [sweep] searches: its parameters, rungs and score, checked before the first run begins. Reads the base
/// configuration; writes nothing. Thread rule: values; otherwise pure functions.
#pragma once

#include <string>
#include <vector>

#include "apps/grid/resolved_grid.hpp"
#include "apps/sweep/sweep_identity.hpp"
#include "experiment/sweep/search.hpp"

namespace troupe::apps {

/// A key with one value, and the strategies (choices of parameter 0) whose runs have it; none: all.
struct FixedChoice {
  grid::Choice choice;
  std::vector<std::size_t> when{};
};

struct SweepPlan {
  grid::GridFile file;
  std::vector<std::string> overrides;
  grid::Check check;
  std::string directory;  // <run.dir>/<name of the grid file>
  std::string metric;     // of the summary
  sweep::Space space;     // strategy.name, where it varies, is parameter 0
  sweep::SearchOptions options;
  double most_s = 0;  // hours of the file; 0: no limit
  SweepIdentity identity;
  std::vector<FixedChoice> fixed;

  [[nodiscard]] std::int64_t epochs() const { return options.rungs.back(); }
  /// The keys that vary, each once.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::vector<grid::Choice> choices(const sweep::Point& point) const;
  /// "007_easgd_lr=0.05_tau=4".
  [[nodiscard]] std::string name(std::size_t trial, const sweep::Point& point) const;
  /// The trial's run, with the whole run.epochs. Errc::config if its settings do not go together.
  [[nodiscard]] core::Result<grid::GridRun> run(std::size_t trial, const sweep::Point& point) const;
};

/// What the identity of a sweep's run leaves out: how far it has been trained.
[[nodiscard]] const std::vector<std::string>& unnamed_in_sweeps();

/// REQUIRES file.sweep. Errc::config names file:line: also where the ends of a range, or a choice, are no valid configuration.
[[nodiscard]] core::Result<SweepPlan> plan_sweep(grid::GridFile file, const std::vector<std::string>& overrides,
                                                 const grid::Check& check);

}  // namespace troupe::apps
