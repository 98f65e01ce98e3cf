/// The tables of a run store (docs/formats/run-store.md). Thread rule: that of the database.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "store/database.hpp"

namespace troupe::store {

/// A store of another version is rebuilt. Raise it with every change of the tables, or of what is read into them.
inline constexpr std::int64_t kSchemaVersion = 3;

/// Columns of the table `runs` that filters, columns and sorting name, beside configuration keys and results.
struct RunColumn {
  std::string_view name;
  std::string_view result;  // its dotted name in summary.json; empty: it is not from there
  bool number = false;
  std::string_view help;
};
inline constexpr std::array kRunColumns{
    RunColumn{"name", "", false, "run.name"},
    RunColumn{"started", "", false,
              "when it began, in the local time of its host: 2026-01-02 03:04:05, or a prefix of that"},
    RunColumn{"status", "", false, "running, done, diverged, interrupted, failed, killed"},
    RunColumn{"grid", "", false, "the grid that made it"},
    RunColumn{"seed", "", true, "run.seed"},
    RunColumn{"strategy", "strategy", false, "strategy.name"},
    RunColumn{"model", "model", false, "model.name"},
    RunColumn{"dataset", "dataset", false, "data.name"},
    RunColumn{"workers", "workers", true, "cluster.workers"},
    RunColumn{"epochs", "epochs", true, "epochs done"},
    RunColumn{"steps", "steps", true, "steps of all workers"},
    RunColumn{"accuracy", "test.accuracy", true, "test.accuracy"},
    RunColumn{"loss", "test.loss", true, "test.loss"},
    RunColumn{"train_loss", "train.loss", true, "train.loss"},
    RunColumn{"images_per_s", "train.images_per_s", true, "train.images_per_s"},
    RunColumn{"wall_s", "wall_s", true, "seconds from the first lease to the end"},
    RunColumn{"error", "", false, "why it ended"},
    RunColumn{"note", "", false, "`troupe runs note`"},
};

/// Whether the database is a store of this version.
[[nodiscard]] core::Result<bool> has_schema(Database& database);

enum class Make : std::uint8_t { anew, unless_there };
/// Drops all tables and creates empty ones. `unless_there`: leaves a store of this version as it is.
[[nodiscard]] core::Result<void> make_schema(Database& database, Make make);

/// Adds the indexes and the table `listing` that stores of earlier programs lack; waits for no writer where nothing is missing. A failure is the database's.
void add_missing(Database& database);

/// The time_of_listing() of the runs' directory when the store knew every directory in it; 0: it did at none. A failure is the database's.
[[nodiscard]] std::int64_t known_listing(Database& database);
/// Remembers that time; 0 forgets it. REQUIRES a transaction. Does nothing in an old store that lacks the table.
void keep_listing(Database& database, std::int64_t time);

/// A random number of this database. Ids are valid within one generation only.
[[nodiscard]] std::int64_t generation(Database& database);

}  // namespace troupe::store
