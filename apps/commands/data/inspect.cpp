#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/dataset.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "apps/reports/data_report.hpp"
#include "data/conversion/contact_sheet.hpp"
#include "data/images/encode.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

constexpr std::size_t kMostErrors = 10;
constexpr std::size_t kMostSheetRows = 20;  // classes

struct InspectArguments {
  DatasetArguments dataset;
  std::string sheet;
  std::int64_t columns = 10;
  std::int64_t cell = 96;
  bool augmented = false;
  bool decode = false;
  bool json = false;
};

core::Result<SplitFacts> facts_of(std::string name, const data::Dataset& split, bool decode, ProgressLine& progress) {
  SplitFacts facts{std::move(name), split.size(), {}, 0, {}};
  facts.by_class.resize(static_cast<std::size_t>(split.classes()));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(split.shape().size()));
  for (std::int64_t i = 0; i < split.size(); ++i) {
    const auto label = decode ? split.read(i, pixels) : split.label(i);
    progress.show(static_cast<double>(i) / static_cast<double>(split.size()), facts.name);
    if (label) {
      ++facts.by_class[static_cast<std::size_t>(*label)];
      continue;
    }
    if (label.error().code != core::Errc::data || !decode) return tl::unexpected(label.error());
    ++facts.unreadable;
    if (facts.errors.size() < kMostErrors) facts.errors.push_back(label.error().message);
  }
  return facts;
}

/// Of each of the first classes the first samples; or with `augmented` one sample in every column.
core::Result<std::vector<std::vector<std::int64_t>>> sheet_rows(const data::Dataset& split, std::int64_t columns,
                                                                bool augmented) {
  std::vector<std::vector<std::int64_t>> rows(std::min(kMostSheetRows, static_cast<std::size_t>(split.classes())));
  const auto wanted = static_cast<std::size_t>(columns);
  for (std::int64_t i = 0; i < split.size(); ++i) {
    const auto label = split.label(i);
    if (!label) return tl::unexpected(label.error());
    const auto row = static_cast<std::size_t>(*label);
    if (row >= rows.size() || rows[row].size() == wanted) continue;
    rows[row].resize(augmented ? wanted : rows[row].size() + 1, i);
    if (std::ranges::all_of(rows, [&](const auto& r) { return r.size() == wanted; })) break;
  }
  return rows;
}

core::Result<void> write_sheet(const InspectArguments& arguments, const data::Dataset& split, std::uint64_t seed) {
  const auto rows = sheet_rows(split, arguments.columns, arguments.augmented);
  if (!rows) return tl::unexpected(rows.error());
  const data::AugmentKey key{seed, 0};
  const auto sheet = data::contact_sheet(split, *rows, arguments.cell, arguments.augmented ? &key : nullptr);
  if (!sheet) return tl::unexpected(sheet.error());
  const auto png = data::encode_png(sheet->shape, sheet->pixels);
  if (!png) return tl::unexpected(png.error());
  const std::filesystem::path path(arguments.sheet);
  const auto directory = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::array parts{std::as_bytes(std::span(*png))};
  return nn::replace_file(nn::system_files(), directory, path.filename().string(), parts);
}

core::Result<void> run_inspect(const InspectArguments& arguments) {
  const auto chosen = chosen_dataset(arguments.dataset);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto splits = data::open_splits(chosen->data, chosen->seed);
  if (!splits) return tl::unexpected(splits.error());
  const auto& train = *splits->train;
  DataFacts facts{chosen->data.name, train.shape(), train.class_names(), arguments.decode, {}};
  for (auto label = facts.class_names.size(); label < static_cast<std::size_t>(train.classes()); ++label)
    facts.class_names.push_back(std::to_string(label));
  {
    ProgressLine progress("reading");
    for (const auto& [name, split] : {std::pair("train", splits->train), std::pair("validation", splits->validation),
                                      std::pair("test", splits->test)}) {
      if (!split) continue;
      auto one = facts_of(name, *split, arguments.decode, progress);
      if (!one) return tl::unexpected(std::move(one.error()));
      one->by_class.resize(facts.class_names.size());
      facts.splits.push_back(std::move(*one));
    }
  }
  if (!arguments.sheet.empty())
    if (auto written = write_sheet(arguments, train, chosen->seed); !written) return written;
  if (arguments.json)
    return print(data_json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return print(data_text(facts) + (arguments.sheet.empty() ? "" : arguments.sheet + "\n"));
}

Action declare_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  add_dataset(app, arguments->dataset);
  app.add_option("--sheet", arguments->sheet,
                 "write a picture with training images as evaluation sees them: a row for each of the first 20 classes")
      ->type_name("FILE.png");
  app.add_flag("--augmented", arguments->augmented,
               "the sheet's columns are one image as the first epochs see it, cut and coloured");
  app.add_option("--columns", arguments->columns, "images in a row of the sheet")
      ->check(whole_between(1, 100))
      ->capture_default_str();
  app.add_option("--cell", arguments->cell, "pixels of the longer side of an image in the sheet")
      ->check(whole_between(8, 1024))
      ->capture_default_str();
  app.add_flag("--decode", arguments->decode, "decode every sample, and count those that cannot be read");
  app.add_flag("--json", arguments->json, "one line of JSON");
  return [arguments] { return run_inspect(*arguments); };
}

}  // namespace

Command data_inspect() {
  return {.name = "inspect",
          .summary = "say what a data set has: shape, samples by class, unreadable ones; and draw a sheet of images",
          .examples =
              "  troupe data inspect --set data.name=glyphs --sheet glyphs.png\n"
              "  troupe data inspect --set data.name=folder --set data.path=photos --set data.resize=64 --decode\n",
          .declare = declare_inspect};
}

}  // namespace troupe::apps
