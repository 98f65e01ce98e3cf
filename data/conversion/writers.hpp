/// Writes samples into the files that the data sets `shards`, `folder` and `batches` read. Files appear whole: each is written under
/// another name and renamed when it is complete. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

struct WrittenSample {
  std::int32_t label = 0;
  std::span<const std::uint8_t> bytes;  ///< an encoded picture; for batches plain pixels
  std::string_view ending;              ///< "jpg" or "png"; for batches unused
};

class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  /// Errc::io, no_space name the file.
  [[nodiscard]] virtual core::Result<void> add(const WrittenSample& sample) = 0;
  /// After the last sample. Without it what was not complete is removed.
  [[nodiscard]] virtual core::Result<void> finish() = 0;
};

struct WriterOptions {
  std::filesystem::path directory;       ///< is made
  std::string split;                     ///< "train" or "test"
  std::int64_t per_file = 10'000;        ///< samples of a shard or batch file
  std::vector<std::string> class_names;  ///< folder; empty: numbers
  std::int32_t classes = 0;
  ImageShape shape;  ///< of batches
};

/// SPLIT-00000.tar, …: entries 00000000.jpg and 00000000.cls.
[[nodiscard]] std::unique_ptr<SampleWriter> shard_writer(WriterOptions options);
/// SPLIT/CLASS/00000000.jpg. Classes keep their order: names that would be sorted otherwise have their number before them.
[[nodiscard]] std::unique_ptr<SampleWriter> folder_writer(WriterOptions options);
/// SPLIT-00000.batch, …
[[nodiscard]] std::unique_ptr<SampleWriter> batch_writer(WriterOptions options);

}  // namespace troupe::data
