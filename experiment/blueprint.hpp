/// A run as it is planned: data opened, model built, strategy made, leases cut; nothing spawned yet. Everything that can be
/// wrong with a configuration is found here. Values that are shared are read only.
#pragma once

#include <memory>

#include "data/config.hpp"
#include "data/lease.hpp"
#include "experiment/reports.hpp"
#include "experiment/settings.hpp"
#include "nn/graph.hpp"
#include "strategies/strategy.hpp"

namespace troupe::experiment {

struct Blueprint {
  std::shared_ptr<const Settings> settings;
  data::Source source;  // empty when the data set was not opened
  std::shared_ptr<const nn::Graph> graph;
  std::shared_ptr<const strategies::Strategy> strategy;
  strategies::Needs needs;
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;              // 0 when the strategy needs none
  std::shared_ptr<data::LeaseBook> book;  // null when the data set was not opened
};

/// What a summary says of the run as a whole, whatever it came to: the rest is the caller's.
[[nodiscard]] Summary summary_of(const Settings& settings, const nn::Graph& graph, std::uint32_t workers,
                                 std::uint32_t servers, const std::string& directory);

/// What these settings may do and hardly mean: keys that the strategy does not read, periods longer than the run. Where the data set
/// was not opened, its length is the published one; where there is none, nothing is said of periods.
[[nodiscard]] std::vector<Note> notes_on(const Blueprint& plan);
/// The same of a run whose workers take so many steps each.
[[nodiscard]] std::vector<Note> notes_on(const Settings& settings, const strategies::Needs& needs,
                                         std::uint64_t steps_per_worker);

/// Whether the training data can be divided among the workers, where the data set was not opened and its length is published: what
/// opening it would find. Errc::config.
[[nodiscard]] core::Result<void> check_leases(const Blueprint& plan);

/// The strategy that the settings name, checked against the company. Errc::config.
[[nodiscard]] core::Result<std::shared_ptr<const strategies::Strategy>> make_strategy(const Settings& settings);

/// Errors: those of the parts, Errc::config or data. Without `open_data` a data set that is not there is no error.
[[nodiscard]] core::Result<Blueprint> draw(const Settings& settings, bool open_data);

}  // namespace troupe::experiment
