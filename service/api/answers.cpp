#include "service/api/answers.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "service/live/followed_file.hpp"
#include "service/live/metrics_line.hpp"
#include "store/query/details.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {

Response no_such_run(const std::string& run) {
  return failure(404, "unknown", fmt::format("there is no run {}; GET /api/v1/runs lists them", run));
}

namespace {

/// Whether the run's directory, or the grid's, is a symbolic link: the store follows it, as `troupe runs` does, but it may lead anywhere.
bool is_linked(const std::string& directory, const std::string& run) {
  const auto is_link = [&](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_symlink(directory + "/" + path, ignored);
  };
  return is_link(run.substr(0, run.find('/'))) || is_link(run);
}

}  // namespace

Answered<OpenRun> open_run(Context& context, const std::string& run) {
  if (is_linked(context.directory, run)) return tl::unexpected(no_such_run(run));
  auto store = context.store->fresh();
  if (!store) return tl::unexpected(failure(store.error()));
  auto id = store::run_at((*store)->database(), run);
  // A job tells its run the moment that it begins, which is before the store has looked at the directories again.
  if (id && !*id && store::open_run_directory(context.directory, run)) {
    context.store->expire();
    store = context.store->fresh();
    if (!store) return tl::unexpected(failure(store.error()));
    id = store::run_at((*store)->database(), run);
  }
  if (!id) return tl::unexpected(failure(id.error()));
  if (!*id) return tl::unexpected(no_such_run(run));
  return OpenRun{*store, **id, run};
}

Answered<OpenRun> open_run(Context& context, const Request& request) {
  return open_run(context, request.parameter("run"));
}

Json started_line(const std::string& directory, const std::string& run, bool resumed) {
  const auto open = store::open_run_directory(directory, run);
  if (!open) return nullptr;
  core::FileDescriptor file(::openat(open->run.get(), "metrics.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return nullptr;
  FollowedFile lines(std::move(file));
  std::string found;
  const auto on_line = [&](std::string_view line, std::uint64_t) {
    if (line.starts_with(R"({"kind":"started",)")) found = line;
  };
  for (bool more = true; more && (resumed || found.empty());) more = lines.read(on_line).value_or(false);
  return metrics_line(found);
}

std::vector<std::string> query_list(const Request& request, std::string_view name) {
  std::vector<std::string> list;
  const auto text = request.query_value(name).value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (end > begin) list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost))
    return std::nullopt;
  return value.get<std::int64_t>();
}

Response query_failure(core::Error error) {
  if (error.message.starts_with("--")) error.message.erase(0, 2);
  return failure(error);
}

}  // namespace troupe::service
