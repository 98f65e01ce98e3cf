#include "service/jobs/job_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::service {
namespace {

using RecordJson = nlohmann::ordered_json;

constexpr const char* kProcessFile = "process.json";
constexpr const char* kExitFile = "exit.json";

RecordJson to_json(const ProcessIdentity& process) { return {{"pid", process.pid}, {"start", process.start}}; }

ProcessIdentity identity_from(const RecordJson& json) {
  return {json.at("pid").get<pid_t>(), json.at("start").get<std::uint64_t>()};
}

/// Nothing: the file is missing or broken. Files are replaced as a whole, so a broken one has another cause than a crash. Errc::io: it is
/// there, but cannot be read now, as where this process has no descriptor left.
template <class Record, class Read>
core::Result<std::optional<Record>> read_record(const std::string& path, const Read& read) {
  const auto text = core::read_text("record", path);
  if (!text && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  if (!text) return core::fail(core::Errc::io, text.error().message);
  const auto json = RecordJson::parse(*text, nullptr, false);
  try {
    return read(json);
  } catch (const RecordJson::exception&) {
    return std::nullopt;
  }
}

void at(CrashPoint crash, std::string_view point) {
  if (crash != nullptr) crash(point);
}

}  // namespace

std::string JobFolder::directory_file(std::int64_t attempt) const {
  return fmt::format("{}/directory-{}", path_, attempt);
}

core::Result<void> JobFolder::create() const {
  return nn::system_files().create_directories(path_).and_then(
      [&] { return nn::system_files().sync_directory(std::filesystem::path(path_).parent_path()); });
}

core::Result<void> JobFolder::write(const std::string& name, std::string_view text) const {
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), path_, name, parts);
}

core::Result<void> JobFolder::write(const ProcessRecord& record) const {
  const RecordJson json{
      {"attempt", record.attempt}, {"supervisor", to_json(record.supervisor)}, {"program", to_json(record.program)}};
  return write(kProcessFile, json.dump() + "\n");
}

core::Result<void> JobFolder::write(const ExitRecord& record) const {
  const RecordJson json{{"attempt", record.attempt},
                        {"never_began", record.never_began},
                        {"code", record.code},
                        {"signal", record.signal},
                        {"error", record.error}};
  return write(kExitFile, json.dump(-1, ' ', false, RecordJson::error_handler_t::replace) + "\n");
}

core::Result<std::optional<ProcessRecord>> JobFolder::read_process() const {
  return read_record<ProcessRecord>(path_ + "/" + kProcessFile, [](const RecordJson& json) {
    return ProcessRecord{json.at("attempt").get<std::int64_t>(), identity_from(json.at("supervisor")),
                         identity_from(json.at("program"))};
  });
}

core::Result<std::optional<ExitRecord>> JobFolder::read_exit() const {
  return read_record<ExitRecord>(path_ + "/" + kExitFile, [](const RecordJson& json) {
    return ExitRecord{json.at("attempt").get<std::int64_t>(), json.at("never_began").get<bool>(),
                      json.at("code").get<int>(), json.at("signal").get<int>(), json.at("error").get<std::string>()};
  });
}

std::string JobFolder::run_directory(std::int64_t attempt) const {
  const auto text = core::read_text("run's directory", directory_file(attempt));
  return text ? text->substr(0, text->find('\n')) : std::string();
}

core::Result<std::optional<core::FileDescriptor>> JobFolder::try_lock() const {
  const auto path = path_ + "/lock";
  core::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return tl::unexpected(core::from_errno(errno, "open", path));
  struct flock what {};
  what.l_type = F_WRLCK;
  what.l_whence = SEEK_SET;
  what.l_len = 1;
  if (::fcntl(file.get(), F_OFD_SETLK, &what) == 0) return std::optional(std::move(file));
  if (errno == EAGAIN || errno == EACCES) return std::nullopt;
  return tl::unexpected(core::from_errno(errno, "lock", path));
}

core::Result<AttemptOutcome> JobFolder::observe(std::int64_t attempt, CrashPoint crash) const {
  if (auto made = create(); !made) return tl::unexpected(std::move(made.error()));
  const auto lock = try_lock();
  if (!lock) return tl::unexpected(lock.error());
  AttemptOutcome outcome;
  const auto process = read_process();
  if (!process) return tl::unexpected(process.error());
  if (*process && (*process)->attempt == attempt) outcome.process = *process;
  if (!*lock) return outcome;
  at(crash, "observe: locked");
  auto end = read_exit();
  if (!end) return tl::unexpected(std::move(end.error()));  // a fence in its place would have the job run twice
  if (*end && (*end)->attempt == attempt) {
    outcome.kind = (*end)->never_began ? AttemptOutcome::Kind::never_began : AttemptOutcome::Kind::ended;
    outcome.exit = std::move(**end);
    return outcome;
  }
  if (outcome.process) {
    outcome.kind = AttemptOutcome::Kind::vanished;
    return outcome;
  }
  if (auto fenced = write(ExitRecord{.attempt = attempt, .never_began = true}); !fenced)
    return tl::unexpected(std::move(fenced.error()));
  at(crash, "observe: fenced");
  outcome.kind = AttemptOutcome::Kind::never_began;
  return outcome;
}

std::string JobFolder::last_log_line() const {
  constexpr std::uint64_t kTail = 4096, kLongest = 500;
  struct stat status {};
  if (::stat(log().c_str(), &status) != 0) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto tail = read_log(size > kTail ? size - kTail : 0, kTail);
  if (!tail) return {};
  std::string_view text = tail->text;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  text.remove_prefix(std::min(text.size(), text.rfind('\n') + 1));  // npos + 1 is 0
  return std::string(text.substr(0, kLongest));
}

core::Result<JobFolder::LogPart> JobFolder::read_log(std::uint64_t from, std::uint64_t limit) const {
  const core::FileDescriptor file(::open(log().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return LogPart{{}, from};
  if (!file) return tl::unexpected(core::from_errno(errno, "open", log()));
  LogPart part{std::string(limit, '\0'), from};
  std::size_t size = 0;
  while (size < part.text.size()) {
    const auto got =
        ::pread(file.get(), part.text.data() + size, part.text.size() - size, static_cast<off_t>(from + size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(core::from_errno(errno, "read", log()));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  part.text.resize(size);
  part.next = from + size;
  return part;
}

}  // namespace troupe::service
