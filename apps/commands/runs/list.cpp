#include "store/query/list.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/checks.hpp"
#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "core/text/layout.hpp"
#include "experiment/plot/figure.hpp"
#include "store/run_values.hpp"
#include "store/schema.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

struct RunsListArguments {
  std::string directory = "runs";
  std::vector<std::string> filter;
  std::vector<std::string> columns{"run",    "status",   "strategy", "model",  "workers",
                                   "epochs", "accuracy", "loss",     "wall_s", "tags"};
  std::string sort = "started";
  bool ascending = false;
  std::int64_t limit = 50;
  bool json = false;
};

std::string listing_json(const store::Listing& listing) {
  std::string text;
  for (const auto& row : listing.rows) {
    Json line = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) line[listing.columns[i]] = store::json_of(row[i]);
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

using ListedCells = std::vector<std::vector<std::string>>;  // rows; the first one is the heading

/// How many columns, from the first on, fill at most `room` columns of a terminal; at least one.
std::size_t fitting_columns(const ListedCells& cells, std::size_t room) {
  std::size_t fitting = 0;
  for (std::size_t used = 0; fitting < cells[0].size(); ++fitting) {
    std::size_t width = 0;
    for (const auto& row : cells) width = std::max(width, plot::columns_of(row[fitting]));
    used += (fitting > 0 ? 2 : 0) + width;
    if (used > room) break;
  }
  return std::max<std::size_t>(fitting, 1);
}

/// `room`: columns of a terminal on which the last keys may be left out; none: all are shown.
std::string listing_text(const store::Listing& listing, std::optional<std::size_t> room) {
  if (listing.rows.empty()) return "no runs\n";
  ListedCells cells{listing.columns};
  for (const auto& row : listing.rows) {
    auto& line = cells.emplace_back();
    for (const auto& cell : row) line.push_back(store::shown(cell));
  }
  const auto fitting = room ? fitting_columns(cells, *room) : cells[0].size();
  const std::vector<std::string> left_out(cells[0].begin() + static_cast<std::ptrdiff_t>(fitting), cells[0].end());
  for (auto& row : cells) row.resize(fitting);
  auto text = aligned_table(cells);
  if (!left_out.empty()) text += fmt::format("no room here for {}: choose with --columns\n", fmt::join(left_out, ", "));
  if (listing.total > static_cast<std::int64_t>(listing.rows.size()))
    text += fmt::format("{} of {} runs; --limit 0 shows all\n", listing.rows.size(), listing.total);
  return text;
}

core::Result<void> run_runs_list(const RunsListArguments& arguments, bool chosen_columns) {
  store::ListQuery query{{}, arguments.columns, arguments.sort, arguments.ascending, arguments.limit};
  auto conditions = store::parse_filter(fmt::format("{}", fmt::join(arguments.filter, " ")));
  if (!conditions) return tl::unexpected(conditions.error());
  query.conditions = std::move(*conditions);
  const auto listing = ask_store<store::Listing>(
      arguments.directory, [&](store::Database& database) { return store::list(database, query); });
  if (!listing) return tl::unexpected(listing.error());
  return print(arguments.json ? listing_json(*listing)
                              : listing_text(*listing, chosen_columns ? std::nullopt : terminal_columns()));
}

/// The keys that every run has.
core::Result<std::string> runs_list_keys(std::string_view topic, std::size_t columns) {
  if (!topic.empty())
    return core::fail(core::Errc::usage, fmt::format("the help of `troupe runs list` has no part \"{}\"", topic));
  constexpr std::size_t kAt = 16;
  std::string text = "\nKeys, beside those of configurations (train.lr, lr) and of results (time.wait_s):\n\n" +
                     core::list_row("run", "the directory", kAt, columns) +
                     core::list_row("tag, tags", "tags of the run", kAt, columns);
  for (const auto& column : store::kRunColumns) text += core::list_row(column.name, column.help, kAt, columns);
  return text;
}

Action declare_runs_list(CLI::App& app) {
  const auto arguments = std::make_shared<RunsListArguments>();
  app.add_option("FILTER", arguments->filter,
                 "conditions that all hold: KEY=VALUE, also != < <= > >= and ~ (contains); quote < and >");
  add_directory(app, arguments->directory);
  const auto* columns =
      app.add_option("--columns", arguments->columns,
                     "keys to show, divided by commas; without it a narrow terminal loses the last ones")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("KEYS");
  app.add_option("--sort", arguments->sort, "key to sort by, greatest first")->type_name("KEY")->capture_default_str();
  app.add_flag("--ascending", arguments->ascending, "least first");
  app.add_option("--limit", arguments->limit, "most runs to show; 0: all")
      ->check(whole_at_least(0))
      ->capture_default_str();
  app.add_flag("--json", arguments->json, "one line of JSON per run");
  return [arguments, columns] { return run_runs_list(*arguments, columns->count() > 0); };
}

}  // namespace

Command runs_list() {
  return {.name = "list",
          .summary = "list runs: newest first, or those that a filter selects (docs/runs.md)",
          .examples =
              "  troupe runs list\n"
              "  troupe runs list strategy=easgd 'accuracy>0.99' --sort accuracy\n"
              "  troupe runs list tag=paper --columns run,lr,tau,test.accuracy --limit 0\n"
              "  troupe runs list status=running --json\n",
          .declare = declare_runs_list,
          .appendix = runs_list_keys};
}

}  // namespace troupe::apps
