#include "data/conversion/convert.hpp"

#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "data/files/class_list.hpp"
#include "data/images/decode.hpp"
#include "data/images/encode.hpp"
#include "data/images/jpeg.hpp"
#include "data/order/bad_samples.hpp"
#include "data/order/sampler.hpp"

namespace troupe::data {
namespace {

struct Content {
  std::int32_t label = 0;
  std::vector<std::uint8_t> bytes;
  std::string_view ending;
};

core::Result<void> encode(const Dataset& data, const ConvertOptions& options, Content& content) {
  auto encoded =
      options.png ? encode_png(data.shape(), content.bytes) : encode_jpeg(data.shape(), content.bytes, options.quality);
  if (!encoded) return tl::unexpected(std::move(encoded.error()));
  content.bytes = std::move(*encoded);
  content.ending = options.png ? "png" : "jpg";
  return {};
}

core::Result<void> content_of(const Dataset& data, std::int64_t sample, const ConvertOptions& options,
                              Content& content) {
  const bool as_stored = data.encoded() && options.form != FileForm::batches;
  if (!as_stored) content.bytes.resize(static_cast<std::size_t>(data.shape().size()));
  const auto label = as_stored ? data.stored(sample, content.bytes) : data.read(sample, content.bytes);
  if (!label) return tl::unexpected(label.error());
  content.label = *label;
  if (as_stored && !picture_size(content.bytes, std::numeric_limits<std::int64_t>::max())) {
    // No picture at all. Reading it says which file it is.
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(data.shape().size()));
    if (const auto read = data.read(sample, pixels); !read) return tl::unexpected(read.error());
  }
  if (as_stored) content.ending = is_jpeg(content.bytes) ? "jpg" : "png";
  return as_stored || options.form == FileForm::batches ? core::Result<void>{} : encode(data, options, content);
}

std::unique_ptr<SampleWriter> writer_of(FileForm form, WriterOptions options) {
  switch (form) {
    case FileForm::folder: return folder_writer(std::move(options));
    case FileForm::batches: return batch_writer(std::move(options));
    case FileForm::shards: break;
  }
  return shard_writer(std::move(options));
}

}  // namespace

core::Result<Converted> convert(const Dataset& data, const std::filesystem::path& directory, const std::string& split,
                                const ConvertOptions& options, const std::function<void(std::int64_t)>& on_progress,
                                const std::function<bool()>& stops) {
  auto names = data.class_names();
  for (auto label = static_cast<std::int32_t>(names.size()); label < data.classes(); ++label)
    names.push_back(std::to_string(label));
  const bool listed = options.form != FileForm::folder;
  if (listed)
    if (auto checked = check_class_names(names); !checked) return tl::unexpected(std::move(checked.error()));
  const auto writer =
      writer_of(options.form, {directory, split, options.per_file, data.class_names(), data.classes(), data.shape()});
  std::vector<std::uint32_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0U);
  if (options.shuffled) order = epoch_permutation(options.seed, 0, data.size());
  Converted converted;
  BadSamples bad(options.max_bad);
  Content content;
  std::int64_t done = 0;
  for (const auto sample : order) {
    if (on_progress) on_progress(done++);
    if (stops && stops()) return core::fail(core::Errc::interrupted, "interrupted: files that were complete stay");
    if (auto read = content_of(data, sample, options, content); !read) {
      if (read.error().code != core::Errc::data) return tl::unexpected(std::move(read.error()));
      if (auto counted = bad.add(sample, read.error()); !counted) return tl::unexpected(std::move(counted.error()));
      if (converted.left_out++ == 0) converted.first_error = read.error().message;
      continue;
    }
    if (auto added = writer->add({content.label, content.bytes, content.ending}); !added)
      return tl::unexpected(std::move(added.error()));
    ++converted.samples;
  }
  if (auto finished = writer->finish(); !finished) return tl::unexpected(std::move(finished.error()));
  if (!listed) return converted;
  if (auto written = write_class_list(directory, names); !written) return tl::unexpected(std::move(written.error()));
  return converted;
}

}  // namespace troupe::data
