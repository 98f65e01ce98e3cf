/// Converts a split of a data set into files of another form. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "data/conversion/writers.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

enum class FileForm : std::uint8_t { shards, folder, batches };

struct ConvertOptions {
  FileForm form = FileForm::shards;
  bool png = false;          ///< plain images become PNG instead of JPEG
  int quality = 95;          ///< of JPEG
  std::uint64_t seed = 1;    ///< of the order
  bool shuffled = true;      ///< so that each file has samples of all classes
  std::int64_t max_bad = 0;  ///< unreadable samples that are left out
  std::int64_t per_file = 10'000;
};

struct Converted {
  std::int64_t samples = 0;
  std::int64_t left_out = 0;
  std::string first_error;  ///< of those left out
};

/// Writes every sample of `data` once. Shards and folders get pictures as they are stored, byte for byte, and plain images as pictures;
/// batch files get what evaluation sees. Beside shards and batch files it writes classes.txt (files/class_list.hpp).
/// `on_progress` gets the number of samples done. If `stops` returns true the conversion ends: complete files stay.
/// Pictures are not decoded: unreadable are those that say so at their beginning, or are empty; damage further behind goes along.
/// Errc::data: one unreadable sample too many, a class whose name classes.txt cannot have; config: images that no picture can hold;
/// interrupted; those of the writers.
[[nodiscard]] core::Result<Converted> convert(const Dataset& data, const std::filesystem::path& directory,
                                              const std::string& split, const ConvertOptions& options,
                                              const std::function<void(std::int64_t)>& on_progress = {},
                                              const std::function<bool()>& stops = {});

}  // namespace troupe::data
