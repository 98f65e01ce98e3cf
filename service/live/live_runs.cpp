#include "service/live/live_runs.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "experiment/directory/directory_lock.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

/// The kind of a line, without parsing it: the recorder writes it first. Anything else is an event without a kind of ours.
std::string_view kind_of(std::string_view line) {
  constexpr std::string_view kBegin = R"({"kind":")";
  if (!line.starts_with(kBegin)) return "line";
  const auto kind = line.substr(kBegin.size(), line.find('"', kBegin.size()) - kBegin.size());
  const bool word =
      !kind.empty() && kind.size() < 40 && std::ranges::all_of(kind, [](char c) { return c >= 'a' && c <= 'z'; });
  return word ? kind : "line";
}

Event event_of(std::string_view line, std::uint64_t end) {
  // A carriage return would end the line in the client.
  std::string data(line);
  std::erase(data, '\r');
  const auto kind = kind_of(line);
  return make_event(kind, data, fmt::format("{}", end), kind == "worker");
}

/// The position behind the newline that is at or behind `from` - 1.
std::uint64_t begin_of_line(int file, std::uint64_t from) {
  if (from == 0) return 0;
  std::string piece(FollowedFile::kPieceBytes, '\0');
  for (auto at = from - 1;; at += piece.size()) {
    const auto count = ::pread(file, piece.data(), piece.size(), static_cast<off_t>(at));
    if (count <= 0) return at;  // behind the end: nothing but new lines
    const auto found = std::string_view(piece.data(), static_cast<std::size_t>(count)).find('\n');
    if (found != std::string_view::npos) return at + found + 1;
  }
}

}  // namespace

core::Result<core::FileDescriptor> LiveRuns::open_metrics(const std::string& run) const {
  const auto directory = store::open_run_directory(directory_, run);
  if (!directory) return tl::unexpected(directory.error());
  core::FileDescriptor file(
      ::openat(directory->run.get(), "metrics.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return tl::unexpected(core::from_errno(errno, "read", run + "/metrics.jsonl"));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return core::fail(core::Errc::io, run + "/metrics.jsonl is no file");
  return file;
}

core::Result<LiveRuns::Followed*> LiveRuns::follow(const std::string& run) {
  forget_former(run);
  auto found = runs_.find(run);
  if (found == runs_.end()) {
    auto file = open_metrics(run);
    if (!file) return tl::unexpected(file.error());
    if (runs_.size() >= kMostRuns) forget_idle();
    if (runs_.size() >= kMostRuns)
      return core::fail(core::Errc::timeout, fmt::format("{} runs are looked at: close some pages", runs_.size()));
    found = runs_.emplace(run, std::make_unique<Followed>(FollowedFile(std::move(*file)))).first;
  }
  found->second->looked_at = Clock::now();
  if (auto read = read_all(*found->second); !read) {
    runs_.erase(found);
    return tl::unexpected(read.error());
  }
  return found->second.get();
}

core::Result<void> LiveRuns::read_all(Followed& followed) {
  std::vector<Event> events;
  const auto on_line = [&](std::string_view line, std::uint64_t end) {
    static_cast<void>(followed.state.read(line));
    if (!followed.clients.empty()) events.push_back(event_of(line, end));
  };
  for (bool more = true; more; events.clear()) {
    const auto read = followed.file.read(on_line);
    // The lines of a piece at once: each client is woken, and sent to, once.
    if (!events.empty())
      for (auto& client : followed.clients)
        if (!client.behind) static_cast<void>(client.queue->push(events));
    if (!read) return tl::unexpected(read.error());
    more = *read;
  }
  // A queue that only this has was never sent: the request was a HEAD, or its answer came too late.
  std::erase_if(followed.clients, [](const Client& client) {
    return client.queue.use_count() == 1 || client.queue->abandoned() || client.queue->ended();
  });
  for (auto& client : followed.clients)
    if (client.behind) catch_up(followed, client);
  return {};
}

/// As far as the client's queue has free bytes: it reads at the client's speed.
void LiveRuns::catch_up(Followed& followed, Client& client) {
  const auto end = followed.file.position();
  std::vector<Event> events;
  const auto on_line = [&](std::string_view line, std::uint64_t at) {
    if (at <= end) events.push_back(event_of(line, at));
  };
  while (client.behind->position() < end && client.queue->free_bytes() > 2 * FollowedFile::kPieceBytes) {
    const auto read = client.behind->read(on_line);
    static_cast<void>(client.queue->push(events));
    events.clear();
    if (!read) return client.queue->end();
    if (!*read) {  // its end, also of a file that is shorter than the others' by now
      client.behind.reset();
      return;
    }
  }
  if (client.behind->position() >= end) client.behind.reset();
}

core::Result<Json> LiveRuns::state(const std::string& run) {
  const auto followed = follow(run);
  if (!followed) return tl::unexpected(followed.error());
  return state_of(run, **followed);
}

core::Result<std::shared_ptr<const std::string>> LiveRuns::state_text(const std::string& run) {
  const auto found = follow(run);
  if (!found) return tl::unexpected(found.error());
  auto& followed = **found;
  const auto now = Clock::now();
  const bool is_new = followed.text_position == followed.file.position() && now - followed.text_made < kStateKept;
  if (!followed.text || !is_new) {
    followed.text = std::make_shared<const std::string>(
        state_of(run, followed).dump(-1, ' ', false, Json::error_handler_t::replace));
    followed.text_position = followed.file.position();
    followed.text_made = now;
  }
  return followed.text;
}

Json LiveRuns::state_of(const std::string& run, const Followed& followed) const {
  const auto status = status_of(run, followed);
  double silent = 0;
  struct stat file {};
  if (status == "running" && ::fstat(followed.file.file(), &file) == 0)
    silent = std::max(0.0, std::difftime(std::time(nullptr), file.st_mtim.tv_sec));
  return followed.state.json(silent, status, followed.file.position());
}

std::string LiveRuns::status_of(const std::string& run, const Followed& followed) const {
  const auto holder = experiment::DirectoryLock::holder(directory_ + "/" + run);
  if (holder && holder->has_value()) return "running";
  const auto& outcome = followed.state.outcome();
  if (outcome.empty()) return "killed";
  return outcome == "done" || outcome == "diverged" || outcome == "interrupted" ? outcome : "failed";
}

core::Result<std::shared_ptr<EventQueue>> LiveRuns::subscribe(const std::string& run,
                                                              std::optional<std::uint64_t> from) {
  const auto followed = follow(run);
  if (!followed) return tl::unexpected(followed.error());
  Client client{std::make_shared<EventQueue>(), std::nullopt};
  if (from && *from < (*followed)->file.position()) {
    auto file = open_metrics(run);
    if (!file) return tl::unexpected(file.error());
    const auto begin = begin_of_line(file->get(), *from);
    client.behind.emplace(std::move(*file), begin);
    catch_up(**followed, client);
  }
  auto queue = client.queue;
  (*followed)->clients.push_back(std::move(client));
  return queue;
}

std::optional<std::chrono::milliseconds> LiveRuns::poll() {
  for (auto next = runs_.begin(); next != runs_.end();) forget_former(std::string((next++)->first));
  for (auto& [run, followed] : runs_) {
    if (!followed->clients.empty()) followed->looked_at = Clock::now();
    if (const auto read = read_all(*followed); !read)
      for (auto& client : followed->clients) client.queue->end();
  }
  forget_idle();
  if (runs_.empty()) return std::nullopt;
  return kPoll;
}

void LiveRuns::forget_former(const std::string& run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  struct stat followed {};
  struct stat there {};
  if (::lstat((directory_ + "/" + run + "/metrics.jsonl").c_str(), &there) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return;  // it may be readable again
  } else if (::fstat(found->second->file.file(), &followed) != 0 ||
             (followed.st_dev == there.st_dev && followed.st_ino == there.st_ino)) {
    return;
  }
  for (auto& client : found->second->clients) client.queue->end();
  runs_.erase(found);
}

void LiveRuns::forget_idle() {
  const auto now = Clock::now();
  std::erase_if(runs_,
                [&](const auto& one) { return one.second->clients.empty() && now - one.second->looked_at > kKept; });
}

}  // namespace troupe::service
