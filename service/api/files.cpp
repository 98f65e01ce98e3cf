#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "core/text/utc_text.hpp"
#include "nn/checkpoint/manifest.hpp"
#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/live/followed_file.hpp"
#include "service/live/metrics_line.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{16} << 20;  // of a file that is answered as text
constexpr std::int64_t kMostNotes = 10'000;

Answered<store::RunDirectory> directory_of(const Context& context, const Request& request) {
  const auto& run = request.parameter("run");
  auto directory = store::open_run_directory(context.directory, run);
  if (directory) return std::move(*directory);
  if (directory.error().code == core::Errc::config) return tl::unexpected(no_such_run(run));
  return tl::unexpected(failure(directory.error()));
}

core::FileDescriptor open_file(int directory, const char* name) {
  core::FileDescriptor file(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) file.reset();
  return file;
}

/// A file of the run as it is. 404: the run has none.
Response file_answer(const Context& context, const Request& request, const char* file_name, const char* type) {
  const auto directory = directory_of(context, request);
  if (!directory) return directory.error();
  const auto file = open_file(directory->run.get(), file_name);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    return failure(404, "unknown", fmt::format("the run has no {}", file_name));
  if (static_cast<std::uint64_t>(status.st_size) > kMostText)
    return failure(500, "io", fmt::format("{} has more than {} bytes", file_name, kMostText));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const auto count = ::pread(file.get(), text.data(), text.size(), 0);
  if (count < 0) return failure(core::from_errno(errno, "read", file_name));
  text.resize(static_cast<std::size_t>(count));
  return answer_text(std::move(text), type);
}

/// Lines of metrics.jsonl of one kind, found without parsing the others.
template <class OnFound>
core::Result<void> each_line(int directory, std::string_view kind, const std::stop_token& stop, OnFound on_found) {
  auto file = open_file(directory, "metrics.jsonl");
  if (!file) return {};
  FollowedFile lines(std::move(file));
  const auto begin = fmt::format(R"({{"kind":"{}",)", kind);
  const auto on_line = [&](std::string_view line, std::uint64_t) {
    if (!line.starts_with(begin)) return;
    if (auto json = metrics_line(line); json.is_object()) on_found(std::move(json));
  };
  for (bool more = true; more && !stop.stop_requested();) {
    const auto read = lines.read(on_line);
    if (!read) return tl::unexpected(read.error());
    more = *read;
  }
  return {};
}

Response show_notes(const Context& context, const Request& request) {
  const auto limit = request.number("limit", 200, 1, kMostNotes);
  if (!limit) return failure(limit.error());
  const auto directory = directory_of(context, request);
  if (!directory) return directory.error();
  std::deque<Json> notes;
  const auto read = each_line(directory->run.get(), "note", request.stop, [&](Json line) {
    notes.push_back(std::move(line));
    if (notes.size() > static_cast<std::size_t>(*limit)) notes.pop_front();
  });
  if (!read) return failure(read.error());
  return answer({{"notes", notes}});
}

Response show_checkpoints(const Context& context, const Request& request) {
  const auto directory = directory_of(context, request);
  if (!directory) return directory.error();
  std::map<std::int64_t, Json> epochs;  // by the steps at their ends
  const auto read = each_line(directory->run.get(), "epoch", request.stop, [&](Json line) {
    const auto steps = line.value("steps", Json());
    if (steps.is_number_integer()) epochs[steps.get<std::int64_t>()] = line.value("epoch", Json());
  });
  if (!read) return failure(read.error());
  const int folder = ::openat(directory->run.get(), "checkpoints", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(folder < 0 ? nullptr : ::fdopendir(folder), &::closedir);
  std::vector<std::pair<std::int64_t, Json>> found;
  while (const auto* entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string name(entry->d_name);
    const auto step = nn::checkpoint_step(name);
    struct stat status {};
    if (step < 0 || ::fstatat(::dirfd(open.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    const auto epoch = epochs.find(step);  // within an epoch it is not known
    found.emplace_back(step, Json{{"file", "checkpoints/" + name},
                                  {"step", step},
                                  {"epoch", epoch == epochs.end() ? Json(nullptr) : epoch->second},
                                  {"bytes", status.st_size},
                                  {"written", core::utc_text(status.st_mtim.tv_sec)}});
  }
  std::ranges::sort(found, std::ranges::greater{}, &std::pair<std::int64_t, Json>::first);
  auto all = Json::array();
  for (auto& [step, checkpoint] : found) all.push_back(std::move(checkpoint));
  return answer({{"checkpoints", all}});
}

}  // namespace

void add_file_routes(Router& router, Context& context) {
  const auto add = [&](const char* pattern, auto handler) {
    router.add({.method = Method::get,
                .pattern = pattern,
                .where = Where::files,
                .handler = [&context, handler](const Request& request) { return handler(context, request); }});
  };
  add("/api/v1/runs/{run}/config", [](const Context& of, const Request& request) {
    return file_answer(of, request, "config.toml", "text/plain; charset=utf-8");
  });
  add("/api/v1/runs/{run}/summary", [](const Context& of, const Request& request) {
    return file_answer(of, request, "summary.json", "application/json");
  });
  add("/api/v1/runs/{run}/plan", [](const Context& of, const Request& request) {
    return file_answer(of, request, "plan.json", "application/json");
  });
  add("/api/v1/runs/{run}/notes", show_notes);
  add("/api/v1/runs/{run}/checkpoints", show_checkpoints);
}

}  // namespace troupe::service
