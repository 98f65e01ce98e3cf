#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "experiment/directory/directory_lock.hpp"
#include "experiment/sweep/record.hpp"
#include "service/api/answers.hpp"
#include "service/api/routes.hpp"

namespace troupe::service {
namespace {

constexpr std::uint64_t kMostRecord = std::uint64_t{64} << 20;  // bytes of a sweep.json
constexpr std::size_t kMostSweeps = 1000;

/// The record of the sweep `name` in the directory of runs; none: it is no sweep. No link is followed.
core::Result<std::optional<sweep::Record>> record_of(const Context& context, const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) return std::optional<sweep::Record>{};
  const core::FileDescriptor root(::open(context.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const core::FileDescriptor directory(
      root ? ::openat(root.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
  const core::FileDescriptor file(
      directory ? ::openat(directory.get(), sweep::kRecordFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::optional<sweep::Record>{};
  if (static_cast<std::uint64_t>(status.st_size) > kMostRecord)
    return core::fail(core::Errc::corrupt,
                      fmt::format("{}/{} has more than {} bytes", name, sweep::kRecordFile, kMostRecord));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const auto count = ::pread(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (count < 0) return tl::unexpected(core::from_errno(errno, "read", name + "/" + sweep::kRecordFile));
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  return sweep::parse_record(text, name + "/" + sweep::kRecordFile).map([](sweep::Record record) {
    return std::optional(std::move(record));
  });
}

/// A killed sweep cannot say so: without a holder of its lock it does not run.
std::string state_of(const Context& context, const std::string& name, const sweep::Record& record) {
  if (record.state != "running") return record.state;
  const auto holder = experiment::DirectoryLock::holder(context.directory + "/" + name);
  return holder && *holder ? "running" : "interrupted";
}

Json overview_of(const Context& context, const std::string& name, const sweep::Record& record) {
  Json best = nullptr;
  if (!record.ranking.empty())
    if (const auto score = sweep::score_of(record.trials[record.ranking.front()])) best = *score;
  return {{"name", name},
          {"metric", record.metric},
          {"goal", record.higher_is_better ? "max" : "min"},
          {"method", record.method},
          {"schedule", record.schedule},
          {"state", state_of(context, name, record)},
          {"trials", record.trials.size()},
          {"most_runs", record.most_trials > 0 ? Json(record.most_trials) : Json(nullptr)},
          {"most_epochs", record.most_epochs > 0 ? Json(record.most_epochs) : Json(nullptr)},
          {"best", std::move(best)},
          {"epochs_trained", sweep::epochs_trained(record)},
          {"elapsed_s", record.elapsed_s}};
}

std::vector<std::string> directories_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(path.c_str()), &::closedir);
  while (const auto* entry = entries ? ::readdir(entries.get()) : nullptr)
    if (entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
      names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

Response list_sweeps(const Context& context, const Request& /*request*/) {
  auto sweeps = Json::array(), problems = Json::array();
  for (const auto& name : directories_in(context.directory)) {
    if (sweeps.size() >= kMostSweeps) {
      problems.push_back(fmt::format("only the first {} sweeps are shown", kMostSweeps));
      break;
    }
    const auto record = record_of(context, name);
    if (!record)
      problems.push_back(record.error().message);  // one damaged record hides no other
    else if (*record)
      sweeps.push_back(overview_of(context, name, **record));
  }
  return answer({{"sweeps", std::move(sweeps)}, {"problems", std::move(problems)}});
}

Response show_sweep(const Context& context, const Request& request) {
  const auto& name = request.parameter("name");
  const auto record = record_of(context, name);
  if (!record) return failure(record.error());
  if (!*record) return failure(404, "unknown", fmt::format("{}: there is no such sweep", name));
  auto json = Json::parse(sweep::to_json(**record).dump());
  json["name"] = name;
  json["state"] = state_of(context, name, **record);
  // Runs as the other routes name them: relative to the service's directory.
  for (auto& trial : json["trials"]) {
    const auto directory = trial["directory"].is_string() ? trial["directory"].get<std::string>() : std::string();
    trial["run"] = directory.empty() ? Json(nullptr) : Json(name + "/" + directory.substr(directory.rfind('/') + 1));
    trial.erase("directory");
  }
  json["history"] = Json::array();
  for (const auto& one : sweep::history(**record))
    json["history"].push_back({{"t", one.t},
                               {"epochs", one.epochs},
                               {"trial", one.trial},
                               {"rung", one.rung},
                               {"score", one.score ? Json(*one.score) : Json(nullptr)},
                               {"best", one.best ? Json(*one.best) : Json(nullptr)}});
  return answer(json);
}

}  // namespace

void add_sweep_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/sweeps",
              .where = Where::files,
              .handler = [&context](const Request& request) { return list_sweeps(context, request); }});
  router.add({.method = Method::get,
              .pattern = "/api/v1/sweeps/{name}",
              .where = Where::files,
              .handler = [&context](const Request& request) { return show_sweep(context, request); }});
}

}  // namespace troupe::service
