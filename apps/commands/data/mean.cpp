#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/dataset.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "data/statistics.hpp"

namespace troupe::apps {
namespace {

struct MeanArguments {
  DatasetArguments dataset;
  std::string output;
  std::int64_t samples = 0;
};

/// Now rather than when everything is measured.
core::Result<void> check_place(const std::filesystem::path& output) {
  const auto folder = output.has_parent_path() ? output.parent_path() : std::filesystem::path(".");
  std::error_code error;
  const auto wrong = [&](std::errc what) {
    return tl::unexpected(core::from_errno(static_cast<int>(what), "write", output.string()));
  };
  if (!std::filesystem::is_directory(folder, error)) return wrong(std::errc::no_such_file_or_directory);
  if (std::filesystem::is_directory(output, error)) return wrong(std::errc::is_a_directory);
  return {};
}

core::Result<void> run_mean(const MeanArguments& arguments) {
  const auto chosen = chosen_dataset(arguments.dataset);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto splits = data::open_splits(chosen->data, chosen->seed);
  if (!splits) return tl::unexpected(splits.error());
  const auto& train = *splits->train;
  if (auto writable = check_place(arguments.output); !writable) return writable;
  ProgressLine progress("measuring");
  const auto statistics =
      data::measure_statistics(train, {.samples = arguments.samples, .max_bad = chosen->data.max_bad},
                               [&](double share) { progress.show(share, chosen->data.name); });
  progress.clear();
  if (!statistics) return tl::unexpected(statistics.error());
  if (auto written = data::write_statistics(arguments.output, *statistics, train.shape()); !written) return written;
  return print(fmt::format(
      "mean {:.6f}, deviation {:.6f} of each channel, with byte 255 as 1\n{}: use it with "
      "data.statistics\n",
      fmt::join(statistics->channel_mean, " "), fmt::join(statistics->channel_deviation, " "), arguments.output));
}

Action declare_mean(CLI::App& app) {
  const auto arguments = std::make_shared<MeanArguments>();
  add_dataset(app, arguments->dataset);
  app.add_option("--output", arguments->output, "the file that data.statistics names then")
      ->type_name("FILE.json")
      ->required();
  app.add_option("--samples", arguments->samples, "measure so many samples, evenly spread; 0: all")
      ->check(whole_between(0, 1'000'000'000'000))
      ->capture_default_str();
  return [arguments] { return run_mean(*arguments); };
}

}  // namespace

Command data_mean() {
  return {.name = "mean",
          .summary = "measure the mean image, and each channel's mean and deviation, of the training split",
          .examples =
              "  troupe data mean photos.toml --output photos-mean.json\n"
              "  troupe data mean --set data.name=cifar10 --output mean.json --samples 10000\n",
          .declare = declare_mean};
}

}  // namespace troupe::apps
