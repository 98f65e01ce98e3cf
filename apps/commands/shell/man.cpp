#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/shell/manual.hpp"
#include "core/text/nearest.hpp"

namespace troupe::apps {
namespace {

struct ManArguments {
  std::vector<std::string> command;
  std::string all;
};

core::Result<void> write_page(const std::filesystem::path& directory, const ManualPage& page) {
  const auto path = directory / fmt::format("man{}", page.section) / fmt::format("{}.{}", page.name, page.section);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "make", path.parent_path().string()));
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << page.text;
  file.close();
  if (!file) return tl::unexpected(core::from_errno(errno == 0 ? EIO : errno, "write", path.string()));
  return {};
}

core::Result<void> run_man(const ManArguments& arguments) {
  CLI::App app(program().summary, program().name);
  const auto pages = manual(declare_all(app));
  if (!arguments.all.empty()) {
    for (const auto& page : pages)
      if (auto written = write_page(arguments.all, page); !written) return written;
    return {};
  }
  const auto name = fmt::format("troupe{}{}", arguments.command.empty() ? "" : "-", fmt::join(arguments.command, "-"));
  const auto found = std::ranges::find(pages, name, &ManualPage::name);
  if (found != pages.end()) return print(found->text);
  std::vector<std::string> names;
  names.reserve(pages.size());
  for (const auto& page : pages) names.push_back(page.name);
  return core::fail(core::Errc::usage, fmt::format("there is no page {}{}; `troupe man` is about all commands", name,
                                                   core::nearest_hint(name, names, core::Quotes::no)));
}

Action declare_man(CLI::App& app) {
  const auto arguments = std::make_shared<ManArguments>();
  auto* command = app.add_option("PAGE", arguments->command,
                                 "a command (`train`, `runs list`), or `config`, `cluster`: the keys of the files");
  app.add_option("--all", arguments->all, "write all pages into man1/ and man5/ of this directory")
      ->type_name("DIR")
      ->excludes(command);
  return [arguments] { return run_man(*arguments); };
}

}  // namespace

Command man() {
  return {.name = "man",
          .summary = "print a manual page, for man, groff or mandoc",
          .examples =
              "  troupe man train | man -l -\n"
              "  troupe man runs list | man -l -\n"
              "  troupe man config | man -l -                         every key of a configuration\n"
              "  troupe man --all ~/.local/share/man                  then: man troupe-train\n",
          .declare = declare_man};
}

}  // namespace troupe::apps
