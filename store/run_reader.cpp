#include "store/run_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "core/text/plural.hpp"
#include "core/text/read_text.hpp"
#include "experiment/directory/directory_lock.hpp"

namespace troupe::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kPiece = std::size_t{4} << 20, kLongestLine = std::size_t{64} << 20;

std::string status_for(const MetricsReader& metrics, bool held) {
  const auto& outcome = metrics.outcome();
  if (held) return "running";
  if (outcome.empty()) return "killed";
  if (outcome == "done" || outcome == "diverged" || outcome == "interrupted") return outcome;
  return "failed";
}

/// The text of summary.json if it is the run's: while a resumed run trains, it is that of the session before.
OrderedJson summary_for(const std::string& directory, const MetricsReader& metrics, std::string& problem) {
  std::error_code error;
  const auto path = directory + "/summary.json";
  if (metrics.outcome().empty() || !std::filesystem::exists(path, error)) return metrics.so_far();
  if (!std::filesystem::is_regular_file(path, error)) {  // a pipe has no end
    problem = "summary.json is no file";
    return metrics.so_far();
  }
  const auto text = core::read_text("summary", path);
  auto json = text ? OrderedJson::parse(*text, nullptr, false) : OrderedJson();
  if (json.is_object()) return json;
  problem = "summary.json cannot be read, or is no JSON object";
  return metrics.so_far();
}

}  // namespace

RunReader::RunReader(Database& database, const std::string& root)
    : root_(root),
      writer_(database),
      find_reading_(database, "SELECT file, position, state FROM readings WHERE run = ?") {}

bool RunReader::is_held(const std::string& directory) {
  const auto holder = experiment::DirectoryLock::holder(directory);
  return holder && holder->has_value();
}

/// A process writes its last lines before it lets go of the lock: they may have been read while it held it.
std::string RunReader::status(std::int64_t run, const std::string& path) {
  MetricsReader metrics;
  if (find_reading_.with(run).next()) metrics = MetricsReader(find_reading_.text(2));
  find_reading_.run();
  return status_for(metrics, is_held(root_ + "/" + path));
}

void RunReader::read(const std::string& path, const std::string& grid, std::int64_t modified) {
  const auto directory = root_ + "/" + path;
  DirectoryRow row{path, "run", modified, {}};
  RunRow run;
  const auto base = path.substr(path.rfind('/') + 1);
  run.started = started_of(base);
  run.grid = grid;
  const bool held =
      is_held(directory);  // before its files are read: what a writer leaves after that makes another look

  const auto text = core::read_text("configuration", directory + "/config.toml");
  const auto config = text ? config_values(*text, "config.toml") : tl::unexpected(text.error());
  if (config)
    run.config = *config;
  else
    row.problem = config.error().message;
  const auto* name = find(run.config, "run.name");
  run.name = name != nullptr && !text_of(*name).empty() ? text_of(*name) : name_of(base);

  if (auto notes = read_notes(directory))
    run.notes = std::move(*notes);
  else
    row.problem = notes.error().message;

  const auto id = writer_.put(row);
  MetricsReader metrics;
  const auto* monitor = find(run.config, "run.monitor");
  if (auto problem = read_metrics(id, directory, monitor != nullptr ? text_of(*monitor) : "", metrics);
      !problem.empty())
    row.problem = std::move(problem);
  const auto summary = summary_for(directory, metrics, row.problem);

  run.id = id;
  run.status = status_for(metrics, held);
  run.error = metrics.error();
  run.results = summary_values(summary);
  run.summary = summary.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (!grid.empty()) run.lineage.emplace_back("grid", grid);
  if (const auto* init = find(run.config, "run.init"); init != nullptr && !text_of(*init).empty())
    run.lineage.emplace_back("init", text_of(*init));
  if (metrics.sessions() > 1) run.lineage.emplace_back("sessions", fmt::format("{}", metrics.sessions()));
  writer_.put(run);
  if (row.problem.empty()) return;
  row.modified = 0;  // it may have gone by the next look
  writer_.put(row);
}

std::string RunReader::read_metrics(std::int64_t run, const std::string& directory, const std::string& monitor,
                                    MetricsReader& reader) {
  const auto path = directory + "/metrics.jsonl";
  const core::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe has no end
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    const int error = errno;
    writer_.forget_points(run);
    return error == ENOENT ? std::string() : core::from_errno(error, "read", "metrics.jsonl").message;
  }
  if (!S_ISREG(status.st_mode)) {
    writer_.forget_points(run);
    return "metrics.jsonl is no file";
  }
  const auto inode = static_cast<std::int64_t>(status.st_ino);
  std::int64_t position = 0;
  if (find_reading_.with(run).next()) {
    if (find_reading_.integer(0) == inode && find_reading_.integer(1) <= status.st_size) {
      position = find_reading_.integer(1);
      reader = MetricsReader(find_reading_.text(2));
    }
    find_reading_.run();
  }
  if (position == 0) writer_.forget_points(run);

  std::string buffer;
  for (bool at_end = false; !at_end;) {
    const auto kept = buffer.size();
    buffer.resize(kept + kPiece);
    const auto count = ::pread(file.get(), buffer.data() + kept, kPiece, position + static_cast<off_t>(kept));
    if (count < 0) return core::from_errno(errno, "read", "metrics.jsonl").message;
    buffer.resize(kept + static_cast<std::size_t>(count));
    at_end = count == 0;
    const auto lines = buffer.rfind('\n') + 1;  // 0 without one
    if (lines == 0 && buffer.size() > kLongestLine) return "metrics.jsonl has a line of more than 64 MiB";
    writer_.put(run, reader.read(std::string_view(buffer).substr(0, lines), monitor));
    buffer.erase(0, lines);
    position += static_cast<std::int64_t>(lines);
  }
  writer_.put_reading(run, inode, position, reader.state());
  if (reader.bad_lines() == 0) return {};
  return fmt::format("metrics.jsonl: {} that are no JSON objects",
                     core::counted(static_cast<std::uint64_t>(reader.bad_lines()), "line"));
}

}  // namespace troupe::store
