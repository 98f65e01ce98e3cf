/// Which engine was the fastest for a convolution or a matrix product, measured once for each device and its libraries and kept in the
/// user's cache folder: a warm start measures nothing. One JSON file for each device and version:
///   {"version": 2, "device": "NVIDIA H200", "libraries": "CUDA 13.0, …", "engines": {"forward 64x56x56 …": {"engine": "cudnn 41 2=7", "seconds": 0.0001}}}
/// Several processes may use one file: save() adds to what is there. Losing the file costs a measurement, nothing else: a file that cannot
/// be read, is damaged or belongs to another device or version is ignored with a note. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

class EngineCache {
 public:
  struct Choice {
    std::string engine;
    double seconds = 0;
    bool operator==(const Choice&) const = default;
  };

  /// $XDG_CACHE_HOME/troupe, else $HOME/.cache/troupe; empty when neither variable is an absolute path: nothing is kept.
  [[nodiscard]] static std::filesystem::path user_folder();

  /// Reads what is known of this device. With an empty folder it keeps choices for this process only.
  EngineCache(std::filesystem::path folder, const DeviceInfo& device);

  /// `key`: to_string() of the description.
  [[nodiscard]] std::optional<Choice> find(const std::string& key) const;
  void put(const std::string& key, Choice choice);
  /// Writes the choices of put() since the last save into the file, which is replaced at once. Errc::io or Errc::no_space: the choices are
  /// kept, and the next save writes them.
  [[nodiscard]] core::Result<void> save();

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }  ///< empty: none
  /// Why a file was ignored; one line each.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  using Choices = std::map<std::string, Choice>;
  [[nodiscard]] Choices read();

  const std::filesystem::path folder_;
  const std::string device_;
  const std::string libraries_;
  std::filesystem::path file_;
  mutable std::mutex mutex_;
  Choices choices_;
  Choices unsaved_;
  std::vector<std::string> notes_;
};

}  // namespace troupe::gpu
