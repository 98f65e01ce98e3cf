/// Checkpoints that survive a crash at any point, a full disk and flipped bits: a directory of generations, each a safetensors file
/// with checksums. Format and order of operations: docs/formats/checkpoint.md. Thread rule: one thread at a time, which need not be
/// the training thread. One writer per directory: it holds the lock of the run (experiment::DirectoryLock). Any number of readers,
/// also during a write.
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

/// One loaded checkpoint. Its metadata is the metadata given to save() (the keys "format" and "step" belong to the store).
struct Checkpoint {
  std::int64_t step = 0;
  SafetensorsFile file;
};

/// The result of load_newest().
struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::string path;
  std::vector<std::string> refused;  // one line per newer generation or manifest that was not usable, with the reason
};

/// The contents of a checkpoint file of `step`; `tensors` must stay alive until they are written.
[[nodiscard]] core::Result<EncodedSafetensors> encode_checkpoint(std::int64_t step, std::span<const TensorView> tensors,
                                                                 const Metadata& metadata);

/// Writes directory/name as a checkpoint of `step`, atomically: a file for load_checkpoint() outside of any store.
[[nodiscard]] core::Result<void> write_checkpoint(FileSystem& files, const std::string& directory,
                                                  const std::string& name, std::int64_t step,
                                                  std::span<const TensorView> tensors, const Metadata& metadata);

/// Loads the newest valid generation in `directory`, going back one by one. Only lists and reads. A writer may save meanwhile: if
/// the generations change during the search, they are listed again. Errc::corrupt: all are bad (with the reasons). Errc::config:
/// there is none. Errc::io: the directory cannot be read.
[[nodiscard]] core::Result<NewestCheckpoint> load_newest(const std::string& directory,
                                                         FileSystem& files = system_files());

/// The writer of a directory of generations.
class CheckpointStore {
 public:
  static constexpr std::int64_t kMinGenerations = 2;  // so that an older one remains if the newest is bad

  /// Opens `directory` for writing, creates it if needed, and removes the temporaries of a killed writer. `keep` is at least
  /// kMinGenerations. `files` must outlive the store.
  [[nodiscard]] static core::Result<CheckpointStore> open(std::string directory, std::int64_t keep = kMinGenerations,
                                                          FileSystem& files = system_files());

  /// Writes generation `step` ≥ 0 and then the manifest, both by replace_file. When both are durable, deletes all but the newest
  /// `keep` generations, the ones that load_newest() found corrupt, and all above `step`, which belong to an abandoned course of
  /// the run. Returns the file's path. After an Error (no_space, io: names the path) the earlier generations are untouched and
  /// still load; a later call may succeed.
  [[nodiscard]] core::Result<std::string> save(std::int64_t step, std::span<const TensorView> tensors,
                                               const Metadata& metadata);

  /// As the function above; also remembers which generations were corrupt.
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

/// Loads one checkpoint file from any place. Errc::corrupt names file, tensor and error; Errc::io: the file cannot be read.
[[nodiscard]] core::Result<Checkpoint> load_checkpoint(const std::string& path, FileSystem& files = system_files());

/// Whether a checkpoint of Troupe says so of itself; files of other programs do not.
[[nodiscard]] bool is_checkpoint(const SafetensorsFile& file);
/// The checkpoint in a file that is in memory. Errc::corrupt: it has no checksums, another format, or no step.
[[nodiscard]] core::Result<Checkpoint> as_checkpoint(SafetensorsFile file);

}  // namespace troupe::nn
