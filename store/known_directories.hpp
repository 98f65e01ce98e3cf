/// What a store knows of the directories that were looked at. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/database.hpp"
#include "store/look/names.hpp"

namespace troupe::store {

struct KnownDirectory {
  enum class Kind : std::uint8_t { run, grid, foreign };
  std::int64_t id = 0;
  std::string_view path{};
  std::int64_t modified = 0;             // 0: look at it again
  std::int64_t now = kUnasked;           // of a run in a grid: when it last changed, as this look saw it
  std::int64_t position = 0;             // of a run without an end: what was read of its metrics.jsonl
  std::string_view status{}, problem{};  // the status of a run without an end
  Kind kind = Kind::foreign;
  bool over = true;   // no run without an end
  bool seen = false;  // it is there still

  static constexpr std::int64_t kUnasked = -2;
};

class KnownDirectories {
 public:
  /// Reads the table `directories`, and of runs without an end their status. REQUIRES a database with the schema. A failure is the database's. `texts`
  /// outlives this.
  KnownDirectories(Database& database, Texts& texts);

  /// Null: it is not known. Valid as long as this.
  [[nodiscard]] KnownDirectory* find(std::string_view path);
  [[nodiscard]] std::vector<KnownDirectory>& all() noexcept { return all_; }
  /// The runs in the grid, by path.
  [[nodiscard]] const std::vector<KnownDirectory*>& in_grid(std::string_view grid) const;

 private:
  void read_all(Database& database);
  void read_unfinished(Database& database);
  void sort_grids();

  Texts& texts_;
  std::vector<KnownDirectory> all_{};
  std::pmr::unordered_map<std::string_view, std::size_t> places_;
  std::map<std::string_view, std::vector<KnownDirectory*>> grids_{};
};

}  // namespace troupe::store
