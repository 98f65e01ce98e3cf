#include "service/runs/sweep_records.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "experiment/directory/directory_lock.hpp"

namespace troupe::service {
namespace {

constexpr std::uint64_t kMostRecord = std::uint64_t{64} << 20;  // bytes of a sweep.json
constexpr std::size_t kMostSweeps = 1000;
/// A file may change once more within the same tick of its file system's clock.
constexpr std::int64_t kTick = 2'000'000'000;  // ns

bool may_be_sweep(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

core::FileDescriptor opened(const std::string& directory) {
  return core::FileDescriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Json overview_of(const std::string& name, const sweep::Record& record) {
  Json best = nullptr;
  if (!record.ranking.empty())
    if (const auto score = sweep::score_of(record.trials[record.ranking.front()])) best = *score;
  return {{"name", name},
          {"metric", record.metric},
          {"goal", record.higher_is_better ? "max" : "min"},
          {"method", record.method},
          {"schedule", record.schedule},
          {"state", nullptr},
          {"trials", record.trials.size()},
          {"most_runs", record.most_trials > 0 ? Json(record.most_trials) : Json(nullptr)},
          {"most_epochs", record.most_epochs > 0 ? Json(record.most_epochs) : Json(nullptr)},
          {"best", std::move(best)},
          {"epochs_trained", sweep::epochs_trained(record)},
          {"elapsed_s", record.elapsed_s}};
}

}  // namespace

core::Result<std::optional<sweep::Record>> sweep_record(const std::string& directory, const std::string& name) {
  if (!may_be_sweep(name)) return std::optional<sweep::Record>{};
  const auto root = opened(directory);
  const core::FileDescriptor sweep(
      root ? ::openat(root.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
  const core::FileDescriptor file(
      sweep ? ::openat(sweep.get(), sweep::kRecordFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
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

std::string sweep_state(const std::string& directory, const std::string& name, const std::string& recorded) {
  if (recorded != "running") return recorded;
  const auto holder = experiment::DirectoryLock::holder(directory + "/" + name);
  return holder && *holder ? "running" : "interrupted";
}

SweepOverviews::List SweepOverviews::list(const std::vector<std::string>& names) {
  List list;
  std::map<std::string, Known> known;
  const auto root = opened(directory_);
  for (const auto& name : names) {
    const auto file = root && may_be_sweep(name) ? file_of(root.get(), name) : std::nullopt;
    if (!file) continue;
    if (list.sweeps.size() >= kMostSweeps) {
      list.problems.push_back(fmt::format("only the first {} sweeps are shown", kMostSweeps));
      break;
    }
    const auto old = known_.find(name);
    const bool same = old != known_.end() && old->second.settled && old->second.file == *file;
    auto one = same ? std::move(old->second) : known_of(name, *file);
    if (!one.problem.empty()) {
      list.problems.push_back(one.problem);  // one damaged record hides no other
    } else if (one.overview.is_object()) {
      list.sweeps.push_back(one.overview);
      list.sweeps.back()["state"] = sweep_state(directory_, name, one.state);
    }
    known.emplace(name, std::move(one));
  }
  known_ = std::move(known);
  return list;
}

std::optional<SweepOverviews::File> SweepOverviews::file_of(int root, const std::string& name) const {
  struct stat status {};
  if (::fstatat(root, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
  const auto path = name + "/" + sweep::kRecordFile;
  if (::fstatat(root, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return File{.inode = status.st_ino,
              .size = status.st_size,
              .modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

SweepOverviews::Known SweepOverviews::known_of(const std::string& name, const File& file) {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  Known known{.file = file};
  known.settled = file.modified < duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count() - kTick;
  ++read_;
  const auto record = sweep_record(directory_, name);
  if (!record) {
    known.problem = record.error().message;
    known.settled = known.settled && record.error().code == core::Errc::corrupt;  // another failure may pass
  } else if (*record) {
    known.overview = overview_of(name, **record);
    known.state = (*record)->state;
  }
  return known;
}

}  // namespace troupe::service
