/// `troupe data fetch`: a published data set, in a folder as its reader in data/ expects it. Blocks the calling thread; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "apps/fetch/published.hpp"

namespace troupe::fetch {

struct FetchOptions {
  std::string from{};  // a folder of the web instead of the published addresses
  DownloadOptions download{};
};

/// Progress with one file: "checking", "fetching" or "unpacking"; its name; bytes so far and in all. Called often.
using OnProgress =
    std::function<void(std::string_view what, const std::string& file, std::uint64_t bytes, std::uint64_t all)>;

struct Fetched {
  std::size_t files = 0;    // of the data set
  std::size_t present = 0;  // of them that were there before
};

/// Makes `folder`. Files that are there are checked, and not fetched again. What is there of a file whose fetching ended early is used.
/// Errors: those of download() and unpack(); Errc::data: a file with the name of one, and other contents, is in the way; usage: FetchOptions::from
/// is no address.
[[nodiscard]] core::Result<Fetched> fetch(const PublishedDataset& dataset, const std::filesystem::path& folder,
                                          const FetchOptions& options, const OnProgress& on_progress,
                                          const std::stop_token& stop);

}  // namespace troupe::fetch
