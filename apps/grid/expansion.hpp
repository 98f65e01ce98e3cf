/// Expands a grid file into its runs: their settings, order and names. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/grid_file.hpp"

namespace troupe::grid {

/// One key's value in one run.
struct Choice {
  std::string key;
  std::string value;  // TOML
  std::string where;  // file:line
  bool operator==(const Choice&) const = default;
};

/// The grid's settings of one run, in the order of the file; the seed comes last, as kSeedKey.
struct Combination {
  std::size_t base = 0;  // in GridFile::bases
  std::vector<Choice> choices;

  [[nodiscard]] const Choice* find(std::string_view key) const noexcept;
};

/// All combinations that are not excluded. `strategies` [bases]: strategy.name in each base. Order: bases, strategies, the other keys of
/// [grid], the groups of [[zip]], the keys of [only], seeds. The first varies slowest; the values of a key keep the order of the file. For
/// a strategy's runs its [only] values replace those of [grid].
[[nodiscard]] std::vector<Combination> expand(const GridFile& file, std::span<const std::string> strategies);

/// Keys that differ between combinations, in order of appearance; kBaseKey is first if bases differ.
[[nodiscard]] std::vector<std::string> varied_keys(std::span<const Combination> combinations);

/// "strategy.alpha" → "alpha"; the whole key where another of `keys` ends alike. strategy.name and run.seed → "strategy", "seed".
[[nodiscard]] std::string short_name(std::string_view key, std::span<const std::string> keys);

/// The name of a run's directory, made of the varied keys: "easgd_alpha=0.5_tau=4_seed=1"; `otherwise` when nothing varies. At most 80
/// characters; longer names end in a hash. Different combinations have different names.
[[nodiscard]] std::string name_of(const Combination& combination, std::span<const std::string> varied,
                                  const GridFile& file, const std::string& otherwise);

/// For messages: "strategy.alpha = 0.5, strategy.tau = 4".
[[nodiscard]] std::string describe(const Combination& combination, const GridFile& file);

}  // namespace troupe::grid
