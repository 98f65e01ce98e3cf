#include "apps/fetch/fetch.hpp"

#include <numeric>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/fetch/part_file.hpp"
#include "apps/fetch/unpack.hpp"

namespace troupe::fetch {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

class Fetching {
 public:
  Fetching(const PublishedDataset& dataset, const fs::path& folder, const FetchOptions& options,
           const OnProgress& on_progress, const std::stop_token& stop)
      : dataset_(dataset), folder_(folder), options_(options), on_progress_(on_progress), stop_(stop) {}

  Result<Fetched> run() {
    if (auto found = find_addresses(); !found) return tl::unexpected(found.error());
    const bool packed = !dataset_.members.empty();
    const auto& wanted = packed ? dataset_.members : dataset_.files;
    const auto place = folder_ / dataset_.folder;
    if (auto made = make(place); !made) return tl::unexpected(made.error());
    Fetched fetched{.files = wanted.size()};
    std::vector<PublishedFile> missing;
    for (const auto& file : wanted) {
      const auto here = is_here(place, file);
      if (!here) return tl::unexpected(here.error());
      if (*here) ++fetched.present;
      if (!*here) missing.push_back(file);
    }
    if (missing.empty()) return fetched;
    auto done = packed ? bring_members(missing, place) : bring(missing);
    if (!done) return tl::unexpected(done.error());
    return fetched;
  }

 private:
  Result<void> find_addresses() {
    const auto texts = options_.from.empty() ? dataset_.addresses : std::vector<std::string>{options_.from};
    for (const auto& text : texts) {
      auto url = parse_url(text);
      if (!url) return tl::unexpected(url.error());
      folders_.push_back(std::move(*url));
    }
    return {};
  }

  static Result<void> make(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return tl::unexpected(core::from_errno(error.value(), "make", folder.string()));
    return {};
  }

  /// Whether the published file is at `place`.
  Result<bool> is_here(const fs::path& place, const PublishedFile& file) const {
    const auto path = place / file.name;
    std::error_code none;
    if (!fs::exists(path, none)) return false;
    on_progress_("checking", file.name, 0, file.bytes);
    if (fs::is_regular_file(path, none) && fs::file_size(path, none) == file.bytes) {
      const auto found = sha256_of(path, stop_);
      if (!found) return tl::unexpected(found.error());
      if (*found == file.sha256) return true;
    }
    return fail(Errc::data, fmt::format("{} is there, and is not the published file: move it away, or fetch into "
                                        "another folder with --to",
                                        path.string()));
  }

  /// Rather now than when the last byte does not fit.
  Result<void> check_space(std::uint64_t bytes) const {
    std::error_code unknown;
    const auto space = fs::space(folder_, unknown);
    if (unknown || space.available >= bytes) return {};
    constexpr double kMega = 1e6;
    return fail(Errc::no_space,
                fmt::format("{}: {:.0f} MB are free, {:.0f} MB more are needed", folder_.string(),
                            static_cast<double>(space.available) / kMega, static_cast<double>(bytes) / kMega));
  }

  static std::uint64_t bytes_of(const std::vector<PublishedFile>& files) {
    return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const PublishedFile& file) { return sum + file.bytes; });
  }

  /// Bytes to come, with what is there of earlier calls.
  [[nodiscard]] std::uint64_t to_come(const std::vector<PublishedFile>& files) const {
    auto bytes = bytes_of(files);
    for (const auto& file : files) {
      std::error_code none;
      const auto part = fs::file_size(folder_ / (file.name + ".part"), none);
      if (!none) bytes -= std::min<std::uint64_t>(part, file.bytes);
    }
    return bytes;
  }

  Result<void> bring(const std::vector<PublishedFile>& files) const {
    if (auto fits = check_space(to_come(files)); !fits) return fits;
    for (const auto& file : files) {
      std::vector<Url> addresses;
      for (const auto& folder : folders_) addresses.push_back(file_in(folder, file.name));
      const auto show = [&](std::uint64_t bytes) { on_progress_("fetching", file.name, bytes, file.bytes); };
      if (auto got = download(file, addresses, folder_, options_.download, show, stop_); !got) return got;
    }
    return {};
  }

  Result<void> bring_members(const std::vector<PublishedFile>& missing, const fs::path& place) const {
    const auto& archive = dataset_.files.front();
    const auto path = folder_ / archive.name;
    const auto here = is_here(folder_, archive);
    if (!here) return tl::unexpected(here.error());
    if (auto fits = check_space(bytes_of(missing) + (*here ? 0 : to_come({archive}))); !fits) return fits;
    if (!*here)
      if (auto got = bring({archive}); !got) return got;
    const auto all = bytes_of(missing);
    const auto show = [&](std::uint64_t bytes) { on_progress_("unpacking", archive.name, bytes, all); };
    if (auto unpacked = unpack(path, missing, place, show, stop_); !unpacked) return unpacked;
    std::error_code ignored;
    fs::remove(path, ignored);
    return {};
  }

  const PublishedDataset& dataset_;
  const fs::path& folder_;
  const FetchOptions& options_;
  const OnProgress& on_progress_;
  const std::stop_token& stop_;
  std::vector<Url> folders_;  // of the web
};

}  // namespace

Result<Fetched> fetch(const PublishedDataset& dataset, const fs::path& folder, const FetchOptions& options,
                      const OnProgress& on_progress, const std::stop_token& stop) {
  return Fetching(dataset, folder, options, on_progress, stop).run();
}

}  // namespace troupe::fetch
