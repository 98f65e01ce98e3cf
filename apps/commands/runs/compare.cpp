#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "store/query/details.hpp"
#include "store/query/list.hpp"

namespace troupe::apps {
namespace {

struct RunsCompareArguments {
  std::string directory = "runs";
  std::vector<std::string> runs;
  std::string filter;
  bool json = false;
};

using ComparedDetails = std::vector<store::RunDetails>;

core::Result<ComparedDetails> compared_details(store::Database& database, const RunsCompareArguments& arguments) {
  std::vector<std::int64_t> ids;
  for (const auto& given : arguments.runs) {
    const auto run = find_run(database, arguments.directory, given);
    if (!run) return tl::unexpected(run.error());
    ids.push_back(run->id);
  }
  if (!arguments.filter.empty()) {
    const auto conditions = store::parse_filter(arguments.filter);
    if (!conditions) return tl::unexpected(conditions.error());
    const auto listing = store::list(database, {*conditions});
    if (!listing) return tl::unexpected(listing.error());
    for (const auto run : listing->runs)
      if (std::ranges::find(ids, run) == ids.end()) ids.push_back(run);
  }
  constexpr std::size_t kMost = 200;  // no one reads a wider table: `runs list --columns` has a row per run
  if (ids.size() < 2 || ids.size() > kMost)
    return core::fail(core::Errc::usage, fmt::format("compare needs 2 to {} runs, not {}", kMost, ids.size()));
  ComparedDetails details;
  for (const auto id : ids) {
    auto one = store::details_of(database, id);
    if (!one) return tl::unexpected(one.error());
    details.push_back(std::move(*one));
  }
  return details;
}

std::vector<std::string> result_keys(const ComparedDetails& runs) {
  std::set<std::string> keys;
  for (const auto& run : runs)
    for (const auto& [key, value] : run.results)
      if (key != "run") keys.insert(key);
  return {keys.begin(), keys.end()};
}

std::vector<std::vector<std::string>> compared_rows(const ComparedDetails& runs, const std::string& heading,
                                                    const std::vector<std::string>& keys,
                                                    store::Values store::RunDetails::*values) {
  std::vector<std::vector<std::string>> rows{{heading}};
  for (const auto& run : runs) rows[0].push_back(run.path);
  for (const auto& key : keys) {
    auto& row = rows.emplace_back(1, key);
    for (const auto& run : runs) {
      const auto* value = store::find(run.*values, key);
      row.push_back(value == nullptr ? "-" : store::shown(*value));
    }
  }
  return rows;
}

std::string compared_text(const ComparedDetails& runs) {
  const auto differing = store::differing_keys(runs);
  auto results = compared_rows(runs, "results", result_keys(runs), &store::RunDetails::results);
  std::vector<std::string> status{"status"};
  for (const auto& run : runs) status.push_back(run.status);
  results.insert(results.begin() + 1, status);
  const auto options = compared_rows(runs, "options that differ", differing, &store::RunDetails::options);
  return (differing.empty() ? std::string("no option differs\n") : aligned_table(options)) + "\n" +
         aligned_table(results);
}

std::string compared_json(const ComparedDetails& runs) {
  using Json = nlohmann::ordered_json;
  const auto differing = store::differing_keys(runs);
  Json list = Json::array();
  for (const auto& run : runs) {
    Json options = Json::object();
    for (const auto& key : differing) {
      const auto* value = store::find(run.options, key);
      options[key] = value == nullptr ? Json(nullptr) : store::json_of(*value);
    }
    list.push_back({{"run", run.path},
                    {"name", run.name},
                    {"status", run.status},
                    {"options", options},
                    {"summary", Json::parse(run.summary, nullptr, false)}});
  }
  return Json{{"differ", differing}, {"runs", list}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

core::Result<void> run_runs_compare(const RunsCompareArguments& arguments) {
  const auto text = ask_store<std::string>(arguments.directory, [&](store::Database& database) {
    return compared_details(database, arguments).map([&](const ComparedDetails& runs) {
      return arguments.json ? compared_json(runs) : compared_text(runs);
    });
  });
  if (!text) return tl::unexpected(text.error());
  return print(*text);
}

Action declare_runs_compare(CLI::App& app) {
  const auto arguments = std::make_shared<RunsCompareArguments>();
  app.add_option("RUN", arguments->runs, "directories of runs, or names that only one run has");
  app.add_option("--filter", arguments->filter, "also the runs that it selects, as in `troupe runs list`");
  add_directory(app, arguments->directory);
  app.add_flag("--json", arguments->json, "one line of JSON");
  return [arguments] { return run_runs_compare(*arguments); };
}

}  // namespace

Command runs_compare() {
  return {
      .name = "compare",
      .summary = "set runs side by side: the options that differ, and all results (`troupe compare` draws curves, too)",
      .examples =
          "  troupe runs compare mnist-bsp mnist-easgd\n"
          "  troupe runs compare --filter 'grid=alpha-tau accuracy>0.98'\n",
      .declare = declare_runs_compare};
}

}  // namespace troupe::apps
