/// Files out of a tar.gz. Blocks the calling thread; one thread.
#pragma once

#include <filesystem>
#include <span>
#include <stop_token>

#include "apps/fetch/download.hpp"

namespace troupe::fetch {

/// Writes `members` into `folder`, which exists. An archive's entry is a member by its name without folders; all others are passed over. Each
/// file appears when it is whole and has its SHA-256. `on_bytes`: of the members, so far. Errc::data: a member is missing or wrong, or the
/// archive is broken; no_space, io; interrupted.
[[nodiscard]] core::Result<void> unpack(const std::filesystem::path& archive, std::span<const PublishedFile> members,
                                        const std::filesystem::path& folder, const OnBytes& on_bytes,
                                        const std::stop_token& stop);

}  // namespace troupe::fetch
