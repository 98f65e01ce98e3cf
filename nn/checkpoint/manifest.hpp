/// checkpoints/manifest.json: the generations that a save meant to keep. It informs users and helps loading to choose; it is never
/// the only evidence: every checkpoint carries its own checksums, and without a manifest the directory is scanned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::nn {

inline constexpr std::string_view kManifestName = "manifest.json";

struct Manifest {
  std::vector<std::int64_t> kept;  // steps, newest first
  std::vector<std::int64_t>
      removed;  // steps whose files were about to be deleted: loaded only if no other generation can be
  bool operator==(const Manifest&) const = default;
};

/// JSON with a checksum: {"xxh3": "<32 digits over the dump of manifest>", "manifest": {"format": 1, "kept": […], "removed": […]}}.
[[nodiscard]] std::string encode_manifest(const Manifest& manifest);
/// Errc::corrupt names `path` if the text differs from what encode_manifest writes; Errc::io: the file cannot be read.
[[nodiscard]] core::Result<Manifest> read_manifest(FileSystem& files, const std::string& path);

/// "step-000000001200.safetensors"
[[nodiscard]] std::string checkpoint_name(std::int64_t step);
/// The step in such a name; -1 for any other name.
[[nodiscard]] std::int64_t checkpoint_step(std::string_view name) noexcept;

}  // namespace troupe::nn
