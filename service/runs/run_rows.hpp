/// Rows of runs, as lists of runs and events about them have them. Thread rule: the store's thread.
#pragma once

#include "service/http/message.hpp"
#include "service/runs/job_facts.hpp"
#include "store/query/list.hpp"
#include "store/run_store.hpp"

namespace troupe::service {

[[nodiscard]] Json json_of(const store::Cell& cell);

struct RunRows {
  Json rows = Json::array();
  std::int64_t total = 0;
};

/// `query.columns`: further ones. Errors: from store::list().
[[nodiscard]] core::Result<RunRows> run_rows(const JobFacts& jobs, store::RunStore& store, store::ListQuery query);

/// The id of the job that made the run; null: none.
[[nodiscard]] Json job_of_run(const JobFacts& jobs, const std::string& run);

}  // namespace troupe::service
