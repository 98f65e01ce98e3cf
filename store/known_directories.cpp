#include "store/known_directories.hpp"

#include <algorithm>

namespace troupe::store {

KnownDirectories::KnownDirectories(Database& database, Texts& texts) : texts_(texts), places_(texts.memory()) {
  // About as many as there are, without counting them.
  constexpr std::int64_t kMost = 1'000'000;
  const auto count =
      static_cast<std::size_t>(std::clamp<std::int64_t>(database.number("SELECT max(id) FROM directories"), 0, kMost));
  all_.reserve(count);
  places_.reserve(count);
  read_all(database);
  read_unfinished(database);
  sort_grids();
}

void KnownDirectories::read_all(Database& database) {
  using Kind = KnownDirectory::Kind;
  for (Statement rows(database, "SELECT id, path, kind, modified, problem FROM directories"); rows.next();) {
    const auto kind = rows.text_view(2);
    const auto problem = rows.text_view(4);
    KnownDirectory known{.id = rows.integer(0), .path = texts_.keep(rows.text_view(1)), .modified = rows.integer(3)};
    known.kind = kind == "run" ? Kind::run : kind == "grid" ? Kind::grid : Kind::foreign;
    if (!problem.empty()) known.problem = texts_.keep(problem);
    places_.emplace(known.path, all_.size());
    all_.push_back(known);
  }
}

void KnownDirectories::read_unfinished(Database& database) {
  Statement rows(database,
                 "SELECT d.path, r.status, m.position FROM runs r JOIN directories d ON d.id = r.id "
                 "LEFT JOIN readings m ON m.run = r.id WHERE r.status IN ('running', 'killed')");
  while (rows.next())
    if (auto* known = find(rows.text_view(0))) {
      known->over = false;
      known->status = texts_.keep(rows.text_view(1));
      known->position = rows.integer(2);
    }
}

void KnownDirectories::sort_grids() {
  for (auto& known : all_)
    if (const auto slash = known.path.find('/'); slash != std::string_view::npos)
      grids_[known.path.substr(0, slash)].push_back(&known);
  for (auto& [grid, runs] : grids_) std::ranges::sort(runs, {}, &KnownDirectory::path);
}

KnownDirectory* KnownDirectories::find(std::string_view path) {
  const auto place = places_.find(path);
  return place == places_.end() ? nullptr : &all_[place->second];
}

const std::vector<KnownDirectory*>& KnownDirectories::in_grid(std::string_view grid) const {
  static const std::vector<KnownDirectory*> kNone;
  const auto runs = grids_.find(grid);
  return runs == grids_.end() ? kNone : runs->second;
}

}  // namespace troupe::store
