/// One file from the web, however often the connection breaks. Blocks the calling thread; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "apps/fetch/http_get.hpp"

namespace troupe::fetch {

/// A file as it was published.
struct PublishedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct DownloadOptions {
  HttpOptions http{};
  int attempts = 5;                       // in a row without progress, at one address
  std::chrono::milliseconds pause{1000};  // after the first of them; doubles with each
};

/// Bytes of the file that are here. Called for each piece, and with fewer bytes where it begins again.
using OnBytes = std::function<void(std::uint64_t bytes)>;

/// Brings `file` into `folder`, which exists, from the first of `addresses` that has it. Goes on from folder/NAME.part, as far as the server
/// permits it, and leaves that behind after an error. Errors: those of http_get() and PartFile; Errc::data: what all addresses have is not
/// the published file; no_space; interrupted.
[[nodiscard]] core::Result<void> download(const PublishedFile& file, std::span<const Url> addresses,
                                          const std::filesystem::path& folder, const DownloadOptions& options,
                                          const OnBytes& on_bytes, const std::stop_token& stop);

}  // namespace troupe::fetch
