#include "apps/fetch/download.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/fetch/part_file.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using core::fail;
using core::Result;

/// Less than this is no progress: a server that drops each connection must not be asked for ever.
constexpr std::uint64_t kProgress = std::uint64_t{64} << 10;  // bytes
constexpr std::chrono::milliseconds kLongestPause{30'000};

/// False: `stop` was requested.
bool wait(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

/// The file from one address.
class Attempts {
 public:
  Attempts(const PublishedFile& file, const Url& address, PartFile& part, const DownloadOptions& options,
           const OnBytes& on_bytes, const std::stop_token& stop)
      : file_(file), address_(address), part_(part), options_(options), on_bytes_(on_bytes), stop_(stop) {}

  /// All bytes are in the part, and are the right ones.
  Result<void> run() {
    bool resumed = part_.size() > 0;
    for (;;) {
      if (auto filled = fill(); !filled) return filled;
      const auto found = sha256_of(part_.path(), stop_);
      if (!found) return tl::unexpected(found.error());
      if (*found == file_.sha256) return {};
      if (auto cleared = part_.clear(); !cleared) return cleared;
      if (!resumed) return wrong(fmt::format("its SHA-256 is {}, expected {}", *found, file_.sha256));
      resumed = false;  // the first part of it may have come from elsewhere
    }
  }

 private:
  Result<void> fill() {
    std::uint64_t most = part_.size();
    for (int failures = 0; part_.size() < file_.bytes;) {
      auto got = http_get(address_, part_.size(), receiver(), options_.http, stop_);
      if (got && part_.size() >= file_.bytes) break;
      HttpError failed = got ? HttpError{{Errc::peer_lost, fmt::format("{}: the file ended after {} of {} bytes",
                                                                       to_text(address_), part_.size(), file_.bytes)},
                                         true}
                             : std::move(got.error());
      if (!failed.passing && !std::exchange(begins_again_, false)) return tl::unexpected(std::move(failed.error));
      if (part_.size() >= most + kProgress) failures = 0;
      most = std::max(most, part_.size());
      if (++failures >= options_.attempts) return tl::unexpected(std::move(failed.error));
      if (!wait(std::min(options_.pause * (1 << std::min(failures - 1, 10)), kLongestPause), stop_))
        return fail(Errc::interrupted, "interrupted");
    }
    return {};
  }

  Receiver receiver() {
    return {.head = [this](const Head& head) { return begin(head); },
            .body = [this](std::span<const char> bytes) -> Result<void> {
              if (part_.size() + bytes.size() > file_.bytes) return too_long();
              auto written = part_.append(bytes);
              on_bytes_(part_.size());
              return written;
            }};
  }

  Result<void> begin(const Head& head) {
    if (head.status == 206) {
      if (head.first != part_.size())
        return again(fmt::format("it was asked for byte {} and sends another part", part_.size()));
      if (head.total && *head.total != file_.bytes) return wrong_length(*head.total);
      return {};
    }
    if (head.status == 416) return again("it does not have the rest of the file");
    if (head.length && *head.length != file_.bytes) return wrong_length(*head.length);
    auto cleared = part_.clear();  // the server sends all of it
    on_bytes_(0);
    return cleared;
  }

  /// The answer does not fit what is here: the next attempt begins with nothing.
  Result<void> again(const std::string& why) {
    begins_again_ = part_.size() > 0;
    if (auto cleared = part_.clear(); !cleared) return cleared;
    on_bytes_(0);
    return wrong(why);
  }

  Result<void> wrong(const std::string& why) const {
    return fail(Errc::data, fmt::format("{} is not the published file: {}", to_text(address_), why));
  }
  Result<void> wrong_length(std::uint64_t bytes) const {
    return wrong(fmt::format("it has {} bytes, expected {}", bytes, file_.bytes));
  }
  Result<void> too_long() {
    if (auto cleared = part_.clear(); !cleared) return cleared;
    return wrong(fmt::format("it has more than {} bytes", file_.bytes));
  }

  const PublishedFile& file_;
  const Url& address_;
  PartFile& part_;
  const DownloadOptions& options_;
  const OnBytes& on_bytes_;
  const std::stop_token& stop_;
  bool begins_again_ = false;  // the last answer is refused, and asking for the whole file may help
};

/// Errors that another address cannot mend.
bool ends_all(Errc code) {
  return code == Errc::io || code == Errc::no_space || code == Errc::interrupted || code == Errc::internal;
}

}  // namespace

Result<void> download(const PublishedFile& file, std::span<const Url> addresses, const std::filesystem::path& folder,
                      const DownloadOptions& options, const OnBytes& on_bytes, const std::stop_token& stop) {
  auto part = PartFile::open(folder / file.name);
  if (!part) return tl::unexpected(part.error());
  if (part->size() > file.bytes)
    if (auto cleared = part->clear(); !cleared) return cleared;
  on_bytes(part->size());
  std::optional<core::Error> first;
  for (const auto& address : addresses) {
    auto got = Attempts(file, address, *part, options, on_bytes, stop).run();
    if (got) return part->commit();
    if (ends_all(got.error().code)) return got;
    if (!first) first = std::move(got.error());
  }
  return tl::unexpected(first.value_or(core::Error{Errc::usage, "no address to fetch from"}));
}

}  // namespace troupe::fetch
