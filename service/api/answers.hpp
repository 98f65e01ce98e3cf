/// What the handlers of several resources need. Thread rule: pure functions, except where they are given a store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "service/api/context.hpp"
#include "service/http/message.hpp"
#include "store/run_store.hpp"

namespace troupe::service {

/// A refusal as the value of a Result that a handler can return at once.
template <class T>
using Answered = tl::expected<T, Response>;

[[nodiscard]] Response no_such_run(const std::string& run);

/// The store and a run of it.
struct OpenRun {
  store::RunStore* store = nullptr;  // valid until the next one is opened
  std::int64_t id = 0;
  std::string path;
};
/// The run that a query names. 404: there is none, and no directory that has become one since the store last looked; or it is a symbolic link.
[[nodiscard]] Answered<OpenRun> open_run(Context& context, const std::string& run);
/// That of `{run}` in the path.
[[nodiscard]] Answered<OpenRun> open_run(Context& context, const Request& request);

/// The `started` line of a run's metrics.jsonl; null: it has none yet. `resumed`: the newest of several, for which the file is read whole.
/// Without following links.
[[nodiscard]] Json started_line(const std::string& directory, const std::string& run, bool resumed = false);

/// The values of `name` in the query, divided by commas; empty ones are left out.
[[nodiscard]] std::vector<std::string> query_list(const Request& request, std::string_view name);

/// Nothing: it is no whole number, or one that std::int64_t does not have.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Json& value);

/// A registered data set as lists have it. `users`: the runs that use it.
[[nodiscard]] Json dataset_row(const DatasetEntry& entry, Json users);

/// An error of a query, whose message names an option of the command line: "--sort: …" becomes "sort: …".
[[nodiscard]] Response query_failure(core::Error error);

}  // namespace troupe::service
