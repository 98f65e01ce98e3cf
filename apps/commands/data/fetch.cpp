#include "apps/fetch/fetch.hpp"

#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/command.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

struct FetchArguments {
  std::string name;
  std::string to;
  std::string from;
};

std::vector<std::string> fetchable_names() {
  std::vector<std::string> names;
  for (const auto& dataset : fetch::published_datasets()) names.push_back(dataset.name);
  return names;
}

/// "train-images-idx3-ubyte.gz  4.2 of 9.9 MB, 1.3 MB/s".
class TransferText {
 public:
  std::string operator()(const std::string& file, std::uint64_t bytes, std::uint64_t all) {
    constexpr double kMega = 1e6;
    const auto now = std::chrono::steady_clock::now();
    if (file != file_ || bytes < began_at_) {
      file_ = file;
      began_ = now;
      began_at_ = bytes;  // of a file that was there in part
    }
    const auto text = fmt::format("{}  {:.1f} of {:.1f} MB", file, static_cast<double>(bytes) / kMega,
                                  static_cast<double>(all) / kMega);
    const std::chrono::duration<double> elapsed = now - began_;
    if (elapsed < std::chrono::seconds(1)) return text;
    return fmt::format("{}, {:.1f} MB/s", text, static_cast<double>(bytes - began_at_) / kMega / elapsed.count());
  }

 private:
  std::string file_;
  std::chrono::steady_clock::time_point began_;
  std::uint64_t began_at_ = 0;
};

core::Result<void> run_fetch(const FetchArguments& arguments) {
  const auto* dataset = fetch::find_published(arguments.name);
  if (dataset == nullptr)
    return core::fail(core::Errc::usage,
                      fmt::format("{} cannot be fetched: {} can", arguments.name, fmt::join(fetchable_names(), ", ")));
  const auto folder = arguments.to.empty() ? "data/" + arguments.name : arguments.to;
  const Interrupt interrupt;  // before the progress line's thread
  ProgressLine progress("checking");
  std::string doing = "checking";
  TransferText text;
  const auto show = [&](std::string_view what, const std::string& file, std::uint64_t bytes, std::uint64_t all) {
    if (what != doing) progress.begin(doing = what);
    progress.show(static_cast<double>(bytes) / static_cast<double>(all), text(file, bytes, all));
  };
  const auto fetched = fetch::fetch(*dataset, folder, {.from = arguments.from}, show, interrupt.token());
  progress.clear();
  if (!fetched && fetched.error().code == core::Errc::interrupted)
    return core::fail(
        core::Errc::interrupted,
        fmt::format("interrupted: what has arrived is in {}, and the same command goes on from there", folder));
  if (!fetched) return tl::unexpected(fetched.error());
  const auto files = core::counted(fetched->files, "file");
  return print(fetched->present == fetched->files
                   ? fmt::format("{}: {} was there already ({})\n", folder, arguments.name, files)
                   : fmt::format("{}: {} is there ({})\n", folder, arguments.name, files));
}

Action declare_fetch(CLI::App& app) {
  const auto arguments = std::make_shared<FetchArguments>();
  app.add_option("DATASET", arguments->name, fmt::format("{}", fmt::join(fetchable_names(), ", ")))->required();
  app.add_option("--to", arguments->to, "the folder of its files (default: data/NAME, where runs look for it)")
      ->type_name("DIR");
  app.add_option("--from", arguments->from,
                 "a folder of the web that has the same files, instead of the published addresses")
      ->type_name("URL");
  return [arguments] { return run_fetch(*arguments); };
}

}  // namespace

Command data_fetch() {
  return {.name = "fetch",
          .summary = "fetch a published data set from the web; a call that was cut off is continued",
          .examples =
              "  troupe data fetch mnist\n"
              "  troupe data fetch cifar10 --to /data/cifar10\n"
              "  troupe data fetch fashion-mnist --from http://mirror.local/fashion\n",
          .declare = declare_fetch};
}

}  // namespace troupe::apps
