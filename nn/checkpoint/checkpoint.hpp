/// Checkpoints that survive a crash at any point, a full disk and flipped bits: a directory of generations, each one safetensors
/// file that checks itself. Format and order of operations: docs/formats/checkpoint.md.
/// Thread rule: one thread at a time; it may be another than the one that trains. One writer per directory: it holds the lock of the
/// run (experiment::DirectoryLock). Any number may read, while it writes too.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "nn/checkpoint/file_system.hpp"
#include "nn/checkpoint/safetensors.hpp"

namespace troupe::nn {

/// One loaded checkpoint. Its metadata holds what save() was given (the keys "format" and "step" are the store's).
struct Checkpoint {
  std::int64_t step = 0;
  SafetensorsFile file;
};

/// What load_newest() found.
struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::string path;
  std::vector<std::string> refused;  // one line per newer generation, or manifest, that could not be used, and why
};

/// Writes directory/name as a checkpoint of `step`, whole or not at all: what load_checkpoint() reads, outside of any store.
[[nodiscard]] core::Result<void> write_checkpoint(FileSystem& files, const std::string& directory,
                                                  const std::string& name, std::int64_t step,
                                                  std::span<const TensorView> tensors, const Metadata& metadata);

/// The newest generation in `directory` that is whole, going back one by one. Only lists and reads. A writer may save meanwhile: when
/// the generations change while they are tried, they are listed again. Errc::corrupt when all are bad (with the reasons), Errc::io
/// when there is none at all.
[[nodiscard]] core::Result<NewestCheckpoint> load_newest(const std::string& directory,
                                                         FileSystem& files = system_files());

/// The writer's hand on a directory of generations.
class CheckpointStore {
 public:
  static constexpr std::int64_t kMinGenerations = 2;  // so that a newest one that turns out bad is no disaster

  /// Opens `directory` to write, made if need be, and removes temporaries that a killed writer left. `keep` below kMinGenerations
  /// counts as that. `files` outlives the store.
  [[nodiscard]] static core::Result<CheckpointStore> open(std::string directory, std::int64_t keep = kMinGenerations,
                                                          FileSystem& files = system_files());

  /// Writes generation `step` ≥ 0 and then the manifest, both by replace_file; when all that is durable, deletes what is no longer
  /// kept: all but the newest `keep` generations, those that load_newest() found corrupt, and those above `step`, which belong to
  /// a course of the run that was given up. Returns the file's path.
  /// After an Error (no_space, io: names the path) the former generations are untouched and still load; a later call may succeed.
  [[nodiscard]] core::Result<std::string> save(std::int64_t step, std::span<const TensorView> tensors,
                                               const Metadata& metadata);

  /// As the function above, and keeps in mind which generations were corrupt.
  [[nodiscard]] core::Result<NewestCheckpoint> load_newest();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

 private:
  CheckpointStore(std::string directory, std::int64_t keep, FileSystem& files)
      : directory_(std::move(directory)), keep_(keep), files_(&files) {}
  [[nodiscard]] std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  std::int64_t keep_;
  FileSystem* files_;
  std::set<std::int64_t> corrupt_;  // steps
};

/// One checkpoint file, wherever it lies. Errc::corrupt names file, tensor and what is wrong; Errc::io when it cannot be read.
[[nodiscard]] core::Result<Checkpoint> load_checkpoint(const std::string& path, FileSystem& files = system_files());

}  // namespace troupe::nn
