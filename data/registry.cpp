#include "data/registry.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "data/cifar10.hpp"
#include "data/glyphs.hpp"
#include "data/idx.hpp"
#include "data/picture_sources.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using DatasetResult = core::Result<std::shared_ptr<const Dataset>>;

DatasetResult open_idx(const DataConfig& config, Split split, std::int64_t limit, std::int64_t classes,
                       const std::string& default_path) {
  const std::string& path = config.path.empty() ? default_path : config.path;
  auto opened =
      IdxDataset::open({path, config.name, static_cast<std::int32_t>(classes), limit, !default_path.empty()}, split);
  if (!opened) return tl::unexpected(opened.error());
  return *std::move(opened);
}

DatasetResult open_any_idx(const DataConfig& config, Split split, std::int64_t limit) {
  if (config.path.empty())
    return fail(Errc::config, "data.name = \"idx\" needs data.path: the directory that has the four files");
  return open_idx(config, split, limit, config.classes, "");
}

/// The form of MNIST and of the data sets that replace it.
constexpr std::int64_t kSide = 28;  // pixels
constexpr std::int32_t kClasses = 10;
constexpr PublishedForm kMnistForm{{1, kSide, kSide}, kClasses, 60'000, 10'000};

/// The files must have the published form, because image_facts() reports it before they are opened.
DatasetResult open_mnist(const DataConfig& config, Split split, std::int64_t limit) {
  auto opened = open_idx(config, split, limit, kClasses, "data/" + config.name);
  if (!opened) return opened;
  const ImageShape shape = (*opened)->shape();
  if (shape != ImageShape{1, kSide, kSide})
    return fail(Errc::data, fmt::format("data set '{0}': images are {1} x {2}, and {0}'s are {3} x {3}: set data.name "
                                        "= \"idx\" to use other images",
                                        config.name, shape.height, shape.width, kSide));
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

/// The data set of a run whose program reads its own samples (model.command): sample k's label is k, and its image one byte that nobody
/// reads. The test split is one sample: the program evaluates its model whole.
class SampleNumbers final : public Dataset {
 public:
  explicit SampleNumbers(std::int64_t samples) : samples_(samples) {}

  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] std::int64_t size() const noexcept override { return samples_; }
  [[nodiscard]] ImageShape shape() const noexcept override { return {1, 1, 1}; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return static_cast<std::int32_t>(samples_); }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    pixels[0] = 0;
    return static_cast<std::int32_t>(index);
  }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override {
    return static_cast<std::int32_t>(index);
  }

 private:
  std::int64_t samples_;
};

core::Result<std::int64_t> numbers_of(const DataConfig& config) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (config.train_samples > 0 && config.train_samples <= kMost) return config.train_samples;
  return core::fail(core::Errc::config,
                    "data.name = \"numbers\" is for a program of your own (model.command), and data.train_samples its "
                    "number of samples: 1 to 2147483647");
}

core::Result<std::shared_ptr<const Dataset>> open_numbers(const DataConfig& config, Split split, std::int64_t) {
  return numbers_of(config).map([&](std::int64_t samples) -> std::shared_ptr<const Dataset> {
    return std::make_shared<const SampleNumbers>(split == Split::train ? samples : 1);
  });
}

core::Result<PublishedForm> numbers_form(const DataConfig& config) {
  return numbers_of(config).map([](std::int64_t samples) {
    return PublishedForm{{1, 1, 1}, static_cast<std::int32_t>(samples), samples, 1};
  });
}

constexpr std::array kRows = {
    DatasetRow{"mnist", "handwritten digits, 60,000 + 10,000 of 28 x 28: IDX files in data.path (default data/mnist)",
               kMnistForm, open_mnist},
    DatasetRow{"fashion-mnist",
               "clothes, 60,000 + 10,000 of 28 x 28: IDX files in data.path (default data/fashion-mnist)", kMnistForm,
               open_mnist},
    DatasetRow{"idx", "any grey images and labels in IDX files named like MNIST's, in data.path; data.classes classes",
               std::nullopt, open_any_idx},
    DatasetRow{"cifar10",
               "colour photographs, 50,000 + 10,000 of 3 x 32 x 32: the binary version's files in data.path (default "
               "data/cifar10)",
               PublishedForm{kCifar10Shape, kCifar10Classes, 50'000, 10'000}, open_cifar10},
    DatasetRow{"glyphs", "digits drawn by the program, 60,000 + 10,000 of 28 x 28: needs no file", kMnistForm,
               open_glyphs, nullptr, true},
    DatasetRow{
        "folder",
        "JPEG and PNG pictures of any size, a folder per class: data.path has the folders train and test (or val)",
        std::nullopt, open_folder, nullptr, false, true},
    DatasetRow{
        "shards",
        "the same in tar files as WebDataset writes them (001.jpg, 001.cls): train*.tar and test*.tar (or val*.tar)",
        std::nullopt, open_shards, nullptr, false, true},
    DatasetRow{"csv", "the same listed as lines path,label: train.csv and test.csv (or val.csv) in data.path",
               std::nullopt, open_csv, nullptr, false, true},
    DatasetRow{"batches",
               "plain images in train*.batch and test*.batch, one shape for all: docs/formats/data.md has the header",
               std::nullopt, open_batches, nullptr, false, true},
    DatasetRow{"records",
               "data.shape bytes and a byte per class for each image, in train*.rec and test*.rec: 794 bytes for MNIST",
               std::nullopt, open_records, nullptr, false, true},
    DatasetRow{"hickle",
               "Theano-MPI's batches: train*/*.hkl and val*/*.hkl (or test*/*.hkl), labels in train_labels.npy and "
               "val_labels.npy; needs HDF5",
               std::nullopt, open_hickle, nullptr, false, true},
    DatasetRow{"numbers", "the numbers of data.train_samples samples that a program of your own reads (model.command)",
               std::nullopt, open_numbers, numbers_form, true},
    DatasetRow{"synthetic", "images from data.seed, of data.shape and data.classes: needs no file", std::nullopt,
               open_synthetic, synthetic_form, true, true},
};

}  // namespace

std::span<const DatasetRow> dataset_registry() { return kRows; }

core::Result<std::optional<PublishedForm>> form_of(const DatasetRow& row, const DataConfig& config) {
  if (!row.form_of) return row.published;
  return row.form_of(config).map([](const PublishedForm& form) { return std::optional(form); });
}

const DatasetRow* find_dataset(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &DatasetRow::name);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace troupe::data
