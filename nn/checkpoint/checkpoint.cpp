#include "nn/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/checkpoint/manifest.hpp"

namespace troupe::nn {
namespace {

constexpr const char* kFormatKey = "format";
constexpr const char* kFormatValue = "troupe-checkpoint-1";
constexpr const char* kFormatFamily = "troupe-checkpoint-";
constexpr const char* kStepKey = "step";

/// The generations that a save keeps and removes, decided from those in the directory.
Manifest plan(std::int64_t step, const std::vector<std::int64_t>& newest_first, const std::set<std::int64_t>& corrupt,
              std::int64_t keep) {
  Manifest manifest{{step}, {}};
  for (const auto other : newest_first) {
    if (other == step) continue;
    const bool wanted = other < step && !corrupt.contains(other) && std::ssize(manifest.kept) < keep;
    (wanted ? manifest.kept : manifest.removed).push_back(other);
  }
  return manifest;
}

std::string path_in(const std::string& directory, std::int64_t step) { return directory + "/" + checkpoint_name(step); }

/// Steps, newest first.
core::Result<std::vector<std::int64_t>> generations(const std::string& directory, FileSystem& files) {
  const auto names = files.list(directory);
  if (!names) return tl::unexpected(names.error());
  std::vector<std::int64_t> steps;
  for (const auto& name : *names)
    if (const auto step = checkpoint_step(name); step >= 0) steps.push_back(step);
  std::ranges::sort(steps, std::greater{});
  return steps;
}

/// Loads the first valid one of the listed generations.
core::Result<NewestCheckpoint> try_all(const std::string& directory, std::vector<std::int64_t> steps, FileSystem& files,
                                       std::set<std::int64_t>& corrupt) {
  std::vector<std::string> refused;
  if (const auto manifest = read_manifest(files, directory + "/" + std::string(kManifestName))) {
    for (const auto step : manifest->kept)
      if (std::ranges::find(steps, step) == steps.end())
        refused.push_back(fmt::format("{}: it is missing, though the manifest names it", path_in(directory, step)));
    // Generations marked for removal come last.
    std::stable_partition(steps.begin(), steps.end(), [&](std::int64_t step) {
      return std::ranges::find(manifest->removed, step) == manifest->removed.end();
    });
  } else if (!steps.empty()) {
    refused.push_back(manifest.error().message + " (the directory was searched instead)");
  }
  for (const auto step : steps) {
    const std::string path = path_in(directory, step);
    auto checkpoint = load_checkpoint(path, files);
    if (checkpoint && checkpoint->step == step)
      return NewestCheckpoint{std::move(*checkpoint), path, std::move(refused)};
    if (checkpoint)
      checkpoint = core::fail(core::Errc::corrupt, fmt::format("{}: it holds step {}", path, checkpoint->step));
    if (checkpoint.error().code == core::Errc::corrupt) corrupt.insert(step);
    refused.push_back(checkpoint.error().message);
  }
  if (steps.empty()) return core::fail(core::Errc::config, fmt::format("there is no checkpoint in {}", directory));
  return core::fail(core::Errc::corrupt,
                    fmt::format("no checkpoint in {} can be used: {}", directory, fmt::join(refused, "; ")));
}

core::Result<NewestCheckpoint> find_newest(const std::string& directory, FileSystem& files,
                                           std::set<std::int64_t>& corrupt) {
  constexpr int kMostPasses = 10;  // a directory listing is far faster than a save
  auto steps = generations(directory, files);
  for (int pass = 1; steps; ++pass) {
    auto found = try_all(directory, *steps, files, corrupt);
    if (pass == kMostPasses || (found && found->refused.empty())) return found;
    auto now = generations(directory, files);
    if (now && *now == *steps) return found;
    steps = std::move(now);
  }
  return tl::unexpected(std::move(steps.error()));
}

}  // namespace

core::Result<CheckpointStore> CheckpointStore::open(std::string directory, std::int64_t keep, FileSystem& files) {
  if (auto made = files.create_directories(directory); !made) return tl::unexpected(std::move(made.error()));
  // Until its parent is synced, a crash loses a new directory with all its generations.
  const std::string parent = std::filesystem::path(directory).parent_path();
  if (auto synced = files.sync_directory(parent.empty() ? "." : parent); !synced)
    return tl::unexpected(std::move(synced.error()));
  CheckpointStore store(std::move(directory), std::max(keep, kMinGenerations), files);
  if (auto cleaned = remove_temporaries(files, store.directory_); !cleaned) return tl::unexpected(cleaned.error());
  return store;
}

core::Result<EncodedSafetensors> encode_checkpoint(std::int64_t step, std::span<const TensorView> tensors,
                                                   const Metadata& metadata) {
  Metadata all = metadata;
  all[kFormatKey] = kFormatValue;
  all[kStepKey] = std::to_string(step);
  return encode_safetensors(tensors, all);
}

core::Result<void> write_checkpoint(FileSystem& files, const std::string& directory, const std::string& name,
                                    std::int64_t step, std::span<const TensorView> tensors, const Metadata& metadata) {
  const auto encoded = encode_checkpoint(step, tensors, metadata);
  if (!encoded) return tl::unexpected(encoded.error());
  return replace_file(files, directory, name, encoded->parts());
}

core::Result<std::string> CheckpointStore::save(std::int64_t step, std::span<const TensorView> tensors,
                                                const Metadata& metadata) {
  const auto existing = generations(directory_, *files_);
  if (!existing) return tl::unexpected(existing.error());
  const std::string name = checkpoint_name(step);
  if (auto written = write_checkpoint(*files_, directory_, name, step, tensors, metadata); !written)
    return tl::unexpected(std::move(written.error()));
  corrupt_.erase(step);  // the file is new

  const Manifest manifest = plan(step, *existing, corrupt_, keep_);
  const std::string text = encode_manifest(manifest);
  const std::array<Bytes, 1> parts{std::as_bytes(std::span(text))};
  if (auto written = replace_file(*files_, directory_, std::string(kManifestName), parts); !written)
    return tl::unexpected(std::move(written.error()));

  for (const auto old : manifest.removed)
    if (files_->remove(path_of(checkpoint_name(old))))
      corrupt_.erase(old);  // the next save lists and tries a remaining one again
  return path_of(name);
}

core::Result<NewestCheckpoint> CheckpointStore::load_newest() { return find_newest(directory_, *files_, corrupt_); }

core::Result<NewestCheckpoint> load_newest(const std::string& directory, FileSystem& files) {
  std::set<std::int64_t> corrupt;
  return find_newest(directory, files, corrupt);
}

core::Result<Checkpoint> load_checkpoint(const std::string& path, FileSystem& files) {
  auto file = read_safetensors(files, path, Checksums::required);
  if (!file) return tl::unexpected(std::move(file.error()));
  return as_checkpoint(std::move(*file));
}

bool is_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata().find(kFormatKey);
  return format != file.metadata().end() && format->second.starts_with(kFormatFamily);
}

core::Result<Checkpoint> as_checkpoint(SafetensorsFile file) {
  const auto corrupt = [&](const std::string& why) {
    return core::fail(core::Errc::corrupt, fmt::format("{}: {}", file.origin(), why));
  };
  if (!file.has_checksums()) return corrupt("the header has no checksum: it is damaged");
  const auto format = file.text(kFormatKey);
  if (!format) return tl::unexpected(format.error());
  if (*format != kFormatValue)
    return corrupt(fmt::format("its format is \"{}\", this version reads \"{}\"", *format, kFormatValue));
  const auto text = file.text(kStepKey);
  if (!text) return tl::unexpected(text.error());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), step);
  if (error != std::errc{} || end != text->data() + text->size() || step < 0)
    return corrupt(fmt::format("its step \"{}\" is not a number", *text));
  return Checkpoint{step, std::move(file)};
}

}  // namespace troupe::nn
