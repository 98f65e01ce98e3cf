#include "data/conversion/convert.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/dataset.hpp"
#include "apps/command.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

struct ConvertArguments {
  DatasetArguments dataset;
  std::string form = "shards";
  std::string output;
  std::string picture = "jpeg";
  int quality = 95;
  std::int64_t per_file = 10'000;
  bool ordered = false;
};

const std::map<std::string, data::FileForm> kForms{
    {"shards", data::FileForm::shards}, {"folder", data::FileForm::folder}, {"batches", data::FileForm::batches}};

/// Files of an earlier conversion would be read with the new ones.
core::Result<void> check_empty(const std::string& output) {
  std::error_code error;
  const std::filesystem::directory_iterator first(output, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) return tl::unexpected(core::from_errno(error.value(), "read", output));
  if (first == std::filesystem::directory_iterator()) return {};
  return core::fail(
      core::Errc::config,
      fmt::format("--output {}: the directory is not empty: remove what an earlier call left there, or choose another",
                  output));
}

core::Result<void> run_convert(const ConvertArguments& arguments) {
  const auto chosen = chosen_dataset(arguments.dataset);
  if (!chosen) return tl::unexpected(chosen.error());
  if (auto empty = check_empty(arguments.output); !empty) return empty;
  const Interrupt interrupt;  // before the progress line's thread
  data::ConvertOptions options{.form = kForms.at(arguments.form),
                               .png = arguments.picture == "png",
                               .quality = arguments.quality,
                               .seed = chosen->seed,
                               .shuffled = !arguments.ordered,
                               .max_bad = chosen->data.max_bad,
                               .per_file = arguments.per_file};
  const auto train = data::open_dataset(chosen->data, data::Split::train);
  if (!train) return tl::unexpected(train.error());
  const auto test = data::open_dataset(chosen->data, data::Split::test);  // before hours are spent on the other
  if (!test) return tl::unexpected(test.error());
  std::string text;
  ProgressLine progress("converting");
  for (const auto& [split, split_name] :
       {std::pair(*train, std::string("train")), std::pair(*test, std::string("test"))}) {
    const auto size = static_cast<double>(split->size());
    const auto converted = data::convert(
        *split, arguments.output, split_name, options,
        [&](std::int64_t done) { progress.show(static_cast<double>(done) / size, split_name); },
        [&] { return interrupt.token().stop_requested(); });
    if (!converted) return tl::unexpected(converted.error());
    text += fmt::format("{}: {}", split_name, core::counted(static_cast<std::uint64_t>(converted->samples), "sample"));
    if (converted->left_out > 0)
      text += fmt::format(", {} unreadable ones left out, the first: {}", converted->left_out, converted->first_error);
    text += "\n";
    options.max_bad -= converted->left_out;
  }
  progress.clear();
  return print(text + fmt::format("{}: read it with data.name = \"{}\"\n", arguments.output, arguments.form));
}

Action declare_convert(CLI::App& app) {
  const auto arguments = std::make_shared<ConvertArguments>();
  add_dataset(app, arguments->dataset);
  app.add_option("--to", arguments->form,
                 "shards (tar files as WebDataset writes them), folder (one per class), or batches (plain pixels as "
                 "evaluation sees them, fastest to read)")
      ->check(word_of({"shards", "folder", "batches"}))
      ->capture_default_str();
  app.add_option("--output", arguments->output, "the directory for train and test, empty; made if it is not there")
      ->type_name("DIR")
      ->required();
  app.add_option("--picture", arguments->picture,
                 "what images become that are no pictures yet: jpeg or png. Pictures stay as they are")
      ->check(word_of({"jpeg", "png"}))
      ->capture_default_str();
  app.add_option("--quality", arguments->quality, "of JPEG")->check(whole_between(1, 100))->capture_default_str();
  app.add_option("--per-file", arguments->per_file, "samples in a shard or batch file")
      ->check(whole_between(1, 100'000'000))
      ->capture_default_str();
  app.add_flag("--ordered", arguments->ordered,
               "keep the samples' order; without it run.seed shuffles them, so that files have all classes");
  return [arguments] { return run_convert(*arguments); };
}

}  // namespace

Command data_convert() {
  return {.name = "convert",
          .summary = "write a data set in another form: tar shards, a folder per class, or plain batches",
          .examples =
              "  troupe data convert --set data.name=cifar10 --to shards --output cifar10-shards\n"
              "  troupe data convert photos.toml --to shards --output /data/shards --per-file 5000\n",
          .declare = declare_convert};
}

}  // namespace troupe::apps
