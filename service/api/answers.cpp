#include "service/api/answers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "store/query/details.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {

std::string utc_text(std::time_t time) { return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(time)); }

Response no_such_run(const std::string& run) {
  return failure(404, "unknown", fmt::format("there is no run {}; GET /api/v1/runs lists them", run));
}

Answered<std::int64_t> run_id(store::RunStore& store, const std::string& run) {
  const auto id = store::run_at(store.database(), run);
  if (!id) return tl::unexpected(failure(id.error()));
  if (!*id) return tl::unexpected(no_such_run(run));
  return **id;
}

Answered<OpenRun> open_run(Context& context, const Request& request) {
  const auto store = context.store->fresh();
  if (!store) return tl::unexpected(failure(store.error()));
  const auto& path = request.parameter("run");
  const auto id = run_id(**store, path);
  if (!id) return tl::unexpected(id.error());
  return OpenRun{*store, *id, path};
}

Json started_line(const std::string& directory, const std::string& run) {
  const auto open = store::open_run_directory(directory, run);
  if (!open) return nullptr;
  const core::FileDescriptor file(
      ::openat(open->run.get(), "metrics.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return nullptr;
  constexpr std::size_t kMost = std::size_t{64} << 10;
  std::string text(kMost, '\0');
  const auto count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(count > 0 ? count : 0));
  const auto end = text.find('\n');
  if (end == std::string::npos) return nullptr;
  auto line = Json::parse(text.substr(0, end), nullptr, false);
  return line.is_object() && line.value("kind", Json()) == "started" ? line : Json();
}

Response query_failure(core::Error error) {
  if (error.message.starts_with("--")) error.message.erase(0, 2);
  return failure(error);
}

}  // namespace troupe::service
