#include "service/runs/run_rows.hpp"

#include <algorithm>
#include <array>

namespace troupe::service {
namespace {

constexpr std::array kRowColumns{"run",        "name",         "status", "started", "strategy", "model",
                                 "dataset",    "workers",      "epochs", "steps",   "accuracy", "loss",
                                 "train_loss", "images_per_s", "wall_s", "tags",    "grid"};

Json tags_of(const Json& text) {
  auto tags = Json::array();
  if (!text.is_string()) return tags;
  const auto all = text.get<std::string>();
  for (std::size_t begin = 0; begin < all.size();) {
    const auto end = std::min(all.find_first_of(", ", begin), all.size());
    if (end > begin) tags.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return tags;
}

}  // namespace

Json json_of(const store::Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

Json job_of_run(const JobFacts& jobs, const std::string& run) {
  if (!jobs.job_of_run) return nullptr;
  const auto job = jobs.job_of_run(run);
  return job ? Json(*job) : Json(nullptr);
}

core::Result<RunRows> run_rows(const JobFacts& jobs, store::RunStore& store, store::ListQuery query) {
  query.columns.insert(query.columns.begin(), kRowColumns.begin(), kRowColumns.end());
  const store::Snapshot moment(store.database());  // a look may write meanwhile
  const auto listing = store::list(store.database(), query);
  if (!listing) return tl::unexpected(listing.error());
  RunRows found;
  found.total = listing->total;
  for (const auto& row : listing->rows) {
    auto one = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto& key = listing->columns[i];
      one[key] = key == "tags" ? tags_of(json_of(row[i])) : json_of(row[i]);
    }
    const auto& run = one["run"];
    auto job = run.is_string() ? job_of_run(jobs, run.get<std::string>()) : Json(nullptr);
    one["job"] = std::move(job);
    found.rows.push_back(std::move(one));
  }
  return found;
}

}  // namespace troupe::service
