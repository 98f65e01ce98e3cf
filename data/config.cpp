#include "data/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/cifar10.hpp"
#include "data/glyphs.hpp"
#include "data/idx.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;
using DatasetResult = Result<std::shared_ptr<const Dataset>>;

DatasetResult open_idx(const DataConfig& config, Split split, std::int64_t limit, std::int64_t classes,
                       const std::string& default_path) {
  const std::string& path = config.path.empty() ? default_path : config.path;
  auto opened = IdxDataset::open({path, config.name, static_cast<std::int32_t>(classes), limit}, split);
  if (!opened) return tl::unexpected(opened.error());
  return *std::move(opened);
}

DatasetResult open_any_idx(const DataConfig& config, Split split, std::int64_t limit) {
  if (config.path.empty())
    return fail(Errc::config, "data.name = \"idx\" needs data.path: the directory that has the four files");
  return open_idx(config, split, limit, config.classes, "");
}

constexpr std::int64_t kPublishedSide = 28;  // pixels: MNIST's, and of all that came after it in its place
constexpr std::int32_t kPublishedClasses = 10;

/// A data set whose form is known by its name: image_facts() has promised it to those who do not open the files.
DatasetResult open_published(const DataConfig& config, Split split, std::int64_t limit) {
  auto opened = open_idx(config, split, limit, kPublishedClasses, "data/" + config.name);
  if (!opened) return opened;
  const ImageShape shape = (*opened)->shape();
  if (shape != ImageShape{1, kPublishedSide, kPublishedSide})
    return fail(Errc::data, fmt::format("data set '{0}': images are {1} x {2}, and {0}'s are {3} x {3}: set data.name "
                                        "= \"idx\" to use other images",
                                        config.name, shape.height, shape.width, kPublishedSide));
  return opened;
}

DatasetResult open_cifar10(const DataConfig& config, Split split, std::int64_t limit) {
  auto opened = Cifar10Dataset::open({config.path.empty() ? "data/cifar10" : config.path, limit}, split);
  if (!opened) return tl::unexpected(opened.error());
  return *std::move(opened);
}

DatasetResult open_glyphs(const DataConfig& config, Split split, std::int64_t limit) {
  return std::make_shared<const GlyphDataset>(static_cast<std::uint64_t>(config.seed), split, limit,
                                              static_cast<unsigned>(config.decode_threads));
}

/// The registry: one line per data set. A new one needs a reader, a line in each of these two tables and a test.
constexpr std::array kKinds = {
    DatasetKind{"mnist", "handwritten digits, 60,000 + 10,000 of 28 x 28: IDX files in data.path (default data/mnist)"},
    DatasetKind{"fashion-mnist",
                "clothes, 60,000 + 10,000 of 28 x 28: IDX files in data.path (default data/fashion-mnist)"},
    DatasetKind{"idx",
                "any grey images and labels in IDX files named like MNIST's, in data.path; data.classes classes"},
    DatasetKind{"cifar10",
                "colour photographs, 50,000 + 10,000 of 3 x 32 x 32: the binary version's files in data.path (default "
                "data/cifar10)"},
    DatasetKind{"glyphs", "digits drawn by the program, 60,000 + 10,000 of 28 x 28: needs no file"},
};
constexpr std::array<DatasetResult (*)(const DataConfig&, Split, std::int64_t), kKinds.size()> kOpeners = {
    open_published, open_published, open_any_idx, open_cifar10, open_glyphs};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const auto& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace

const core::Table<DataConfig>& data_table() {
  using core::at_least;
  using core::between;
  constexpr double kMostBuffers = 65'536;  // each of a batch
  constexpr double kMostPixels = 65'535;   // along a side
  constexpr double kMostSamples = 1e12;
  static const core::Table<DataConfig> table{
      "data",
      {{"name", &DataConfig::name, core::one_of(kind_names()), "the data set; required"},
       {"path", &DataConfig::path, core::anything(),
        "directory of its files, relative to the working directory; empty: data/<name>"},
       {"classes", &DataConfig::classes, between(2, 256), "idx only: number of classes"},
       {"seed", &DataConfig::seed, at_least(0), "glyphs only: which digits are drawn (run.seed shuffles and augments)"},
       {"batch", &DataConfig::batch, between(1, core::kMostCount),
        "samples per worker and step: one number, or a list with one per worker"},
       {"prefetch", &DataConfig::prefetch, between(1, kMostBuffers), "batches that a loader keeps ready"},
       {"decode_threads", &DataConfig::decode_threads, between(1, 256), "threads per process that decode and augment"},
       {"shuffle", &DataConfig::shuffle, core::anything(), "visit the samples in a new random order each epoch"},
       {"drop_tail", &DataConfig::drop_tail, core::anything(),
        "leave out an epoch's last incomplete batch instead of filling it from the beginning"},
       {"mean", &DataConfig::mean, core::one_of({"none", "channel", "image"}),
        "what is subtracted: nothing, a mean per channel, a mean per pixel"},
       {"normalise", &DataConfig::normalise, core::anything(), "divide by each channel's standard deviation"},
       {"crop", &DataConfig::crop, between(0, kMostPixels),
        "side of the square cut out, in pixels: at random to train, the centre to test; 0: the whole image"},
       {"pad", &DataConfig::pad, between(0, 4096), "pixels that a training crop may reach beyond each side"},
       {"mirror", &DataConfig::mirror, core::anything(),
        "exchange left and right of every second training sample, at random"},
       {"train_samples", &DataConfig::train_samples, between(0, kMostSamples),
        "use the first so many training samples; 0: all"},
       {"test_samples", &DataConfig::test_samples, between(0, kMostSamples),
        "use the first so many test samples; 0: all"}}};
  return table;
}

std::span<const DatasetKind> dataset_kinds() { return kKinds; }

Result<std::optional<ImageFacts>> image_facts(const DataConfig& config) {
  if (config.name == "idx") return std::nullopt;
  const bool cifar10 = config.name == "cifar10";
  const ImageShape stored = cifar10 ? kCifar10Shape : ImageShape{1, kPublishedSide, kPublishedSide};
  return output_shape(preprocess_options(config), stored).map([&](const ImageShape& shape) {
    return std::optional(ImageFacts{shape, cifar10 ? kCifar10Classes : kPublishedClasses});
  });
}

std::optional<std::int64_t> published_samples(const DataConfig& config, Split split) {
  if (config.name == "idx") return {};
  const bool train = split == Split::train;
  const std::int64_t limit = train ? config.train_samples : config.test_samples;
  const std::int64_t all = !train                     ? 10'000
                           : config.name == "cifar10" ? 50'000
                                                      : 60'000;  // of every data set known by name
  return limit > 0 ? std::min(limit, all) : all;
}

DatasetResult open_dataset(const DataConfig& config, Split split) {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i].name == config.name)
      return kOpeners[i](config, split, split == Split::train ? config.train_samples : config.test_samples);
  return fail(Errc::config, fmt::format("data.name is '{}': one of {}", config.name, fmt::join(kind_names(), " | ")));
}

Result<std::vector<std::int64_t>> batches_per_worker(const DataConfig& config, std::int64_t workers) {
  const auto count = static_cast<std::size_t>(workers);
  if (config.batch.size() == 1) return std::vector<std::int64_t>(count, config.batch[0]);
  if (config.batch.size() == count) return config.batch;
  return fail(Errc::config, fmt::format("data.batch has {} values for {} workers: give one for all, or one per worker",
                                        config.batch.size(), workers));
}

PreprocessOptions preprocess_options(const DataConfig& config) {
  const Mean mean = config.mean == "none" ? Mean::none : config.mean == "image" ? Mean::image : Mean::channel;
  return {mean, config.normalise, config.crop, config.pad, config.mirror};
}

Result<Source> open_source(const DataConfig& config, std::uint64_t seed) {
  const auto train = open_dataset(config, Split::train);
  if (!train) return tl::unexpected(train.error());
  const auto test = open_dataset(config, Split::test);
  if (!test) return tl::unexpected(test.error());
  const ImageShape shape = (*train)->shape(), other = (*test)->shape();
  if (shape != other)
    return fail(
        Errc::data,
        fmt::format(
            "data set '{}': training images are {} x {} x {} and test images {} x {} x {}: they do not belong together",
            config.name, shape.channels, shape.height, shape.width, other.channels, other.height, other.width));
  const PreprocessOptions options = preprocess_options(config);
  Statistics statistics;
  if (options.mean != Mean::none || options.normalise) {
    auto measured = measure_statistics(**train);
    if (!measured) return tl::unexpected(measured.error());
    statistics = *std::move(measured);
  }
  auto preprocess = Preprocess::create(options, shape, statistics);
  if (!preprocess) return tl::unexpected(preprocess.error());
  const Order order = config.shuffle ? Order::shuffled : Order::sequential;
  return Source{std::make_shared<const BatchBuilder>(*train, *preprocess, seed, order),
                std::make_shared<const BatchBuilder>(*test, *preprocess, seed, Order::sequential)};
}

}  // namespace troupe::data
