#include "experiment/directory/run_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "nn/checkpoint/file_system.hpp"

namespace troupe::experiment {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSuffixes = 10'000;

tl::unexpected<core::Error> failed(int error_number, std::string_view doing, std::string_view path) {
  return tl::unexpected(core::from_errno(error_number, doing, path));
}

/// Returns 0, or the errno of the failed write.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

core::Result<void> replace(const std::string& directory, const std::string& name, std::string_view contents) {
  const std::array parts{std::as_bytes(std::span(contents))};
  return nn::replace_file(nn::system_files(), directory, name, parts);
}

/// A path that the user gave. That nothing is there is no fault of a disk.
tl::unexpected<core::Error> not_opened(int error_number, std::string_view doing, const std::string& path) {
  if (error_number == ENOENT || error_number == ENOTDIR)
    return core::fail(core::Errc::config, fmt::format("{} does not exist: give a run's directory", path));
  return failed(error_number, doing, path);
}

/// The text without its newline; nothing when the file does not exist.
core::Result<std::optional<std::string>> read_text(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) return failed(error.value(), "look for", path);
  if (!there) return std::nullopt;
  const auto bytes = nn::system_files().read(path);
  if (!bytes) return tl::unexpected(bytes.error());
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string time_stamp(std::time_t now) {
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return text.data();
}

/// The number in "journal-0012.bin"; 0 for other names.
int journal_number(std::string_view name) {
  constexpr std::string_view kPrefix = "journal-", kSuffix = ".bin";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size())
    return 0;
  const auto digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

/// Length of the file up to its last newline.
core::Result<std::int64_t> whole_lines(int fd, const std::string& path) {
  std::int64_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) return failed(errno, "seek in", path);
  std::array<char, 4096> block;
  while (end > 0) {
    const auto length = std::min<std::int64_t>(end, block.size());
    const auto got = ::pread(fd, block.data(), static_cast<std::size_t>(length), end - length);
    if (got < 0 && errno == EINTR) continue;
    if (got != length) return failed(got < 0 ? errno : EIO, "read", path);
    const auto newline = std::string_view(block.data(), static_cast<std::size_t>(length)).rfind('\n');
    if (newline != std::string_view::npos) return end - length + static_cast<std::int64_t>(newline) + 1;
    end -= length;
  }
  return 0;
}

}  // namespace

core::Result<RunDirectory> RunDirectory::create(const std::string& parent, const std::string& name, std::time_t now) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return failed(error.value(), "create directory", parent);
  const std::string base = (fs::path(parent) / fmt::format("{}-{}", time_stamp(now), name)).string();
  for (int suffix = 1; suffix <= kMostSuffixes; ++suffix) {
    std::string path = suffix == 1 ? base : fmt::format("{}-{}", base, suffix);
    if (::mkdir(path.c_str(), 0755) != 0) {  // the process that creates it owns it
      if (errno == EEXIST) continue;
      return failed(errno, "create directory", path);
    }
    RunDirectory directory(std::move(path));
    if (::mkdir(directory.checkpoints().c_str(), 0755) != 0)
      return failed(errno, "create directory", directory.checkpoints());
    // Names survive a power failure only after a sync of their directory.
    for (const auto& changed : {directory.path(), parent})
      if (auto synced = nn::system_files().sync_directory(changed); !synced)
        return tl::unexpected(std::move(synced.error()));
    return directory;
  }
  return failed(EEXIST, "create directory", base);
}

core::Result<RunDirectory> RunDirectory::open(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  struct stat status {};
  if (::stat(trimmed.c_str(), &status) != 0) return not_opened(errno, "open run directory", path);
  RunDirectory directory(std::move(trimmed));
  if (!S_ISDIR(status.st_mode))
    return core::fail(core::Errc::config, fmt::format("{} is a file: give a run's directory", path));
  if (::stat(directory.config_file().c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return failed(errno, "read", directory.config_file());
    return core::fail(core::Errc::config,
                      fmt::format("{} is not a run directory: there is no config.toml in it", path));
  }
  return directory;
}

core::Result<RunDirectory> RunDirectory::containing(const std::string& path) {
  std::error_code error;
  const bool is_directory = fs::is_directory(path, error);
  if (error) return not_opened(error.value(), "open", path);
  if (is_directory) return open(path);
  const fs::path folder = fs::absolute(path, error).parent_path();
  if (error) return failed(error.value(), "find", path);
  for (const fs::path& candidate : {folder, folder.parent_path()}) {
    const bool there = fs::exists(candidate / "config.toml", error);
    if (error) return failed(error.value(), "look for", (candidate / "config.toml").string());
    if (there) return open(candidate.string());
  }
  return core::fail(
      core::Errc::config,
      fmt::format("{} is in no run directory: there is no config.toml in its folder or the one above", path));
}

core::Result<void> RunDirectory::remove_temporaries() const {
  return nn::remove_temporaries(nn::system_files(), path_);
}

core::Result<void> RunDirectory::write_config(const core::Config& config) const {
  return replace(path_, "config.toml", config.to_toml_with_reasons());
}

core::Result<void> RunDirectory::write_config(const JournalSegment& segment, const core::Config& config) const {
  return replace(path_, fs::path(segment.config).filename().string(), config.to_toml_with_reasons());
}

core::Result<core::Config> RunDirectory::read_config(const core::Schema& schema,
                                                     const std::vector<std::string>& overrides) const {
  return core::Config::load(schema, config_file(), overrides);
}

core::Result<void> RunDirectory::write_summary(std::string_view json) const {
  return replace(path_, "summary.json", fmt::format("{}\n", json));
}

std::string RunDirectory::read_summary() const {
  const auto text = read_text(summary_file());
  return text && *text ? **text : std::string();
}

core::Result<void> RunDirectory::write_plan(std::string_view json) const {
  return replace(path_, "plan.json", fmt::format("{}\n", json));
}

core::Result<void> RunDirectory::write_plan(const JournalSegment& segment, std::string_view json) const {
  return replace(path_, fs::path(segment.plan).filename().string(), fmt::format("{}\n", json));
}

core::Result<std::optional<std::string>> RunDirectory::read_plan() const { return read_text(path_ + "/plan.json"); }

core::Result<std::optional<std::string>> RunDirectory::read_plan(const JournalSegment& segment) const {
  return segment.plan.empty() ? read_plan() : read_text(segment.plan);
}

core::Result<JournalSegment> RunDirectory::next_journal() const {
  const auto segments = journals();
  if (!segments) return tl::unexpected(segments.error());
  return segment(segments->empty() ? 1 : segments->back().number + 1);
}

core::Result<std::vector<JournalSegment>> RunDirectory::journals() const {
  std::error_code error;
  std::vector<JournalSegment> segments;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    const auto number = journal_number(entry->path().filename().string());
    if (number == 0) continue;
    segments.push_back(segment(number));
    for (auto* beside : {&segments.back().start, &segments.back().config, &segments.back().plan}) {
      if (!error && !fs::exists(*beside, error)) beside->clear();
    }
    if (error) break;
  }
  if (error) return failed(error.value(), "list", path_);
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return segments;
}

JournalSegment RunDirectory::segment(int number) const {
  return {number, fmt::format("{}/journal-{:04}.bin", path_, number),
          fmt::format("{}/journal-{:04}.start.safetensors", path_, number),
          fmt::format("{}/journal-{:04}.config.toml", path_, number),
          fmt::format("{}/journal-{:04}.plan.json", path_, number)};
}

core::Result<MetricsWriter> MetricsWriter::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return failed(errno, "open", path);
  MetricsWriter writer(path, fd, 0);
  const auto size = whole_lines(fd, path);
  if (!size) return tl::unexpected(size.error());
  writer.size_ = *size;
  if (::ftruncate(fd, *size) != 0) return failed(errno, "shorten", path);
  return writer;
}

MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      failing_(other.failing_),
      dropped_(other.dropped_) {}

MetricsWriter& MetricsWriter::operator=(MetricsWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  size_ = other.size_;
  failing_ = other.failing_;
  dropped_ = other.dropped_;
  return *this;
}

MetricsWriter::~MetricsWriter() {
  if (fd_ >= 0) ::close(fd_);
}

core::Result<void> MetricsWriter::append(std::string_view line) {
  const std::string bytes = fmt::format("{}\n", line);
  const int error = write_all(fd_, bytes);
  if (error == 0) {
    size_ += static_cast<std::int64_t>(bytes.size());
    failing_ = false;
    return {};
  }
  // Removes the written part of the line; if this fails, the next open() removes it.
  [[maybe_unused]] const int ignored = ::ftruncate(fd_, size_);
  ++dropped_;
  if (std::exchange(failing_, true)) return {};
  return failed(error, "write", path_);
}

}  // namespace troupe::experiment
