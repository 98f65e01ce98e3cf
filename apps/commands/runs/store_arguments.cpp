#include "apps/commands/runs/store_arguments.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/output.hpp"
#include "core/text/plural.hpp"
#include "experiment/plot/figure.hpp"

namespace troupe::apps {

void add_directory(CLI::App& app, std::string& directory) {
  app.add_option("--dir", directory, "the directory that has the runs: run.dir")
      ->type_name("DIR")
      ->capture_default_str();
}

core::Result<void> say_remarks(store::RunStore& store) {
  const auto& directory = store.directory();
  for (const auto& remark : store.remarks()) tell(fmt::format("troupe: {}\n", remark));
  const auto problems = store.problems();
  if (!problems) return tl::unexpected(problems.error());
  constexpr std::size_t kNamed = 3;
  for (std::size_t i = 0; i < std::min(problems->size(), kNamed); ++i)
    tell(fmt::format("troupe: {}/{}: {}\n", directory, (*problems)[i].path, (*problems)[i].text));
  if (problems->size() > kNamed)
    tell(fmt::format("troupe: and {} more; `troupe runs rebuild --dir {}` names all\n", problems->size() - kNamed,
                     directory));
  return {};
}

core::Result<store::RunStore> open_store(const std::string& directory) {
  auto store = store::RunStore::open(directory);
  if (!store) return store;
  if (auto said = say_remarks(*store); !said) return tl::unexpected(said.error());
  return store;
}

core::Result<NamedRun> find_run(store::Database& database, const std::string& directory, const std::string& given) {
  auto path = std::filesystem::path(given + "/.").lexically_normal().parent_path();
  const auto root = std::filesystem::path(directory + "/.").lexically_normal().parent_path();
  if (const auto inside = path.lexically_relative(root); !inside.empty() && *inside.begin() != "..") path = inside;
  store::Statement run(database,
                       "SELECT r.id, d.path FROM directories d JOIN runs r ON r.id = d.id WHERE d.path = ?1 "
                       "UNION ALL SELECT r.id, d.path FROM runs r JOIN directories d ON r.id = d.id WHERE r.name = ?1 "
                       "AND NOT EXISTS (SELECT 1 FROM directories WHERE path = ?1 AND kind = 'run') LIMIT 4");
  std::vector<NamedRun> found;
  for (run.with(path.string()); run.next();) found.push_back({run.integer(0), run.text(1)});
  if (auto checked = database.check(); !checked) return tl::unexpected(checked.error());
  if (found.size() == 1) return found.front();
  if (found.empty())
    return core::fail(core::Errc::config, fmt::format("{} has no run {}; `troupe runs list --dir {}` shows them",
                                                      directory, given, directory));
  std::vector<std::string> paths;
  for (const auto& one : found) paths.push_back(one.path);
  return core::fail(core::Errc::config, fmt::format("several runs are called {}: name a directory, such as {}", given,
                                                    fmt::join(paths, ", ")));
}

std::string aligned_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], plot::columns_of(row[i]));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - plot::columns_of(row[i]) + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace troupe::apps
