/// The resolved run: data opened, model built, strategy created, leases cut; no actor spawned. Every error of a configuration is found
/// here. Shared values are read only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/config.hpp"
#include "data/order/lease.hpp"
#include "experiment/reports.hpp"
#include "experiment/settings.hpp"
#include "nn/graph.hpp"
#include "strategies/strategy.hpp"

namespace troupe::experiment {

struct RunSpec {
  std::shared_ptr<const Settings> settings;
  data::Source source;  // empty when the data set was not opened
  std::shared_ptr<const nn::Graph> graph;
  std::shared_ptr<const strategies::Strategy> strategy;
  strategies::Needs needs;
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;                     // 0 when the strategy needs none
  std::shared_ptr<data::LeaseScheduler> leases;  // null when the data set was not opened
};

/// The parts of a summary that do not depend on the result; the caller adds the others.
[[nodiscard]] Summary summary_of(const Settings& settings, const nn::Graph& graph, std::uint32_t workers,
                                 std::uint32_t servers, const std::string& directory);

/// The note on a key that `strategy` does not use.
[[nodiscard]] std::string unused_text(const std::string& key, const std::string& strategy);

/// Valid settings that are probably mistakes: keys that the strategy does not read, periods longer than the run, a
/// batch larger than the data set. If the data set is not
/// open, its published length is used; without one, periods are not checked.
[[nodiscard]] std::vector<Note> notes_on(const RunSpec& spec);
/// The same for a run with `steps_per_worker` steps per worker.
[[nodiscard]] std::vector<Note> notes_on(const Settings& settings, const strategies::Needs& needs,
                                         std::uint64_t steps_per_worker);

/// A warning when workers of one host have more threads together than it has cores: then they wait for each other's cores, which no
/// figure of the run shows. `where`: the host in the message, "this machine". None with synthetic steps: their workers sleep.
[[nodiscard]] std::optional<Note> crowding(const Settings& settings, std::span<const std::uint32_t> workers,
                                           unsigned cores, std::string_view where);
/// For a run whose workers are all on this machine.
[[nodiscard]] std::optional<Note> crowding_here(const Settings& settings);

/// Checks that the training data can be divided among the workers, if the data set is not open and its length is published: the check that
/// opening makes. Errc::config.
[[nodiscard]] core::Result<void> check_leases(const RunSpec& spec);

/// The division of the training data among the workers, if the data set is open or its length is published; else null. Errors: those of
/// check_leases().
[[nodiscard]] core::Result<std::shared_ptr<const data::LeaseScheduler>> planned_leases(const RunSpec& spec);

/// The strategy that the settings name, checked against the numbers of workers and servers. Errc::config.
[[nodiscard]] core::Result<std::shared_ptr<const strategies::Strategy>> make_strategy(const Settings& settings);

/// Errors: those of the parts, Errc::config or data. Without `open_data` a missing data set is no error.
[[nodiscard]] core::Result<RunSpec> build_run_spec(const Settings& settings, bool open_data);

}  // namespace troupe::experiment
