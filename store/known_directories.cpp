#include "store/known_directories.hpp"

#include <algorithm>
#include <bit>

namespace troupe::store {
namespace {

constexpr std::size_t kPiece = 512;

/// Directories by path, in one piece of memory: of 100,000 each is found with two cache misses.
class PathTable {
 public:
  explicit PathTable(std::size_t count) : slots_(std::bit_ceil(2 * count + 1)) {}
  void add(KnownDirectory& directory) { slot_of(directory.path) = {hash(directory.path), &directory}; }
  [[nodiscard]] KnownDirectory* find(std::string_view path) { return slot_of(path).directory; }

 private:
  struct Slot {
    std::size_t hash = 0;
    KnownDirectory* directory = nullptr;
  };
  static std::size_t hash(std::string_view path) { return std::hash<std::string_view>()(path); }
  /// The path's, or the free one where it belongs.
  Slot& slot_of(std::string_view path) {
    const auto own = hash(path);
    auto at = own & (slots_.size() - 1);
    while (slots_[at].directory != nullptr && (slots_[at].hash != own || slots_[at].directory->path != path))
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  std::vector<Slot> slots_;
};

bool is_in_grid(const KnownDirectory& directory) { return directory.path.find('/') != std::string_view::npos; }

}  // namespace

void KnownDirectories::read(Database& database, const std::function<void(Piece&)>& on_piece) {
  read_unfinished(database);
  read_all(database, on_piece);
  sort_grids();
}

void KnownDirectories::read_unfinished(Database& database) {
  Statement rows(database,
                 "SELECT r.id, r.status, m.position FROM runs r LEFT JOIN readings m ON m.run = r.id "
                 "WHERE r.status IN ('running', 'killed')");
  while (rows.next()) unfinished_.emplace(rows.integer(0), Unfinished{rows.text(1), rows.integer(2)});
}

void KnownDirectories::read_all(Database& database, const std::function<void(Piece&)>& on_piece) {
  using Kind = KnownDirectory::Kind;
  for (Statement rows(database, "SELECT id, path, kind, modified, problem FROM directories"); rows.next();) {
    if (pieces_.empty() || pieces_.back().size() == kPiece) {
      if (!pieces_.empty()) on_piece(pieces_.back());
      pieces_.emplace_back().reserve(kPiece);
    }
    auto& known = pieces_.back().emplace_back();
    const auto kind = rows.text_view(2);
    const auto problem = rows.text_view(4);
    known.path = texts_.keep(rows.text_view(1));
    if (!problem.empty()) known.problem = texts_.keep(problem);
    known.id = rows.integer(0);
    known.modified = rows.integer(3);
    known.kind = kind == "run" ? Kind::run : kind == "grid" ? Kind::grid : Kind::foreign;
    known.over = unfinished_.empty() || !unfinished_.contains(known.id);
    ++count_;
  }
  if (!pieces_.empty()) on_piece(pieces_.back());
}

void KnownDirectories::sort_grids() {
  for (auto& piece : pieces_)
    for (auto& known : piece)
      if (is_in_grid(known)) grids_[known.path.substr(0, known.path.find('/'))].push_back(&known);
  for (auto& [grid, runs] : grids_) std::ranges::sort(runs, {}, &KnownDirectory::path);
}

std::vector<std::string_view> KnownDirectories::mark_listed(const std::vector<std::string_view>& names) {
  PathTable table(count_);
  for (auto& piece : pieces_)
    for (auto& known : piece)
      if (!is_in_grid(known)) table.add(known);
  std::vector<std::string_view> others;
  for (const auto name : names)
    if (auto* known = table.find(name))
      known->listed = true;
    else
      others.push_back(name);
  return others;
}

const std::vector<KnownDirectory*>& KnownDirectories::in_grid(std::string_view grid) const {
  static const std::vector<KnownDirectory*> kNone;
  const auto runs = grids_.find(grid);
  return runs == grids_.end() ? kNone : runs->second;
}

KnownDirectory* KnownDirectories::in_grid(std::string_view grid, std::string_view path) const {
  const auto& runs = in_grid(grid);
  const auto found = std::ranges::lower_bound(runs, path, {}, &KnownDirectory::path);
  return found == runs.end() || (*found)->path != path ? nullptr : *found;
}

const KnownDirectories::Unfinished* KnownDirectories::unfinished(std::int64_t id) const {
  const auto found = unfinished_.find(id);
  return found == unfinished_.end() ? nullptr : &found->second;
}

}  // namespace troupe::store
