/// What a store knows of the directories that were looked at. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/database.hpp"
#include "store/look/names.hpp"

namespace troupe::store {

struct KnownDirectory {
  enum class Kind : std::uint8_t { run, grid, foreign };
  std::string_view path{}, problem{};
  std::int64_t id = 0;
  std::int64_t modified = 0;        // 0: look at it again
  std::int64_t now = kNoDirectory;  // when it last changed, as this look saw it
  Kind kind = Kind::foreign;
  bool over = true;     // no run without an end
  bool listed = false;  // its name was found by a listing
  bool seen = false;    // it is there still
};

class KnownDirectories {
 public:
  /// Neighbours, which one thread asks for.
  using Piece = std::vector<KnownDirectory>;
  /// A run without an end.
  struct Unfinished {
    std::string status;
    std::int64_t position = 0;  // what was read of its metrics.jsonl
  };

  /// `texts` outlives this.
  explicit KnownDirectories(Texts& texts) : texts_(texts) {}

  /// Reads the table `directories`, and of runs without an end their status. REQUIRES a database with the schema. A failure is the database's.
  /// `on_piece` gets each piece as soon as it is read, while others are still to come; it stays where it is, also after an exception.
  void read(Database& database, const std::function<void(Piece&)>& on_piece);

  [[nodiscard]] std::list<Piece>& pieces() noexcept { return pieces_; }
  /// Marks the directories with these names; returns the names that are not known.
  [[nodiscard]] std::vector<std::string_view> mark_listed(const std::vector<std::string_view>& names);
  /// The runs in the grid, by path.
  [[nodiscard]] const std::vector<KnownDirectory*>& in_grid(std::string_view grid) const;
  /// One of them. Null: it is not known.
  [[nodiscard]] KnownDirectory* in_grid(std::string_view grid, std::string_view path) const;
  /// Null: it is over.
  [[nodiscard]] const Unfinished* unfinished(std::int64_t id) const;

 private:
  void read_unfinished(Database& database);
  void read_all(Database& database, const std::function<void(Piece&)>& on_piece);
  void sort_grids();

  Texts& texts_;
  std::list<Piece> pieces_{};
  std::size_t count_ = 0;
  std::unordered_map<std::int64_t, Unfinished> unfinished_{};
  std::map<std::string_view, std::vector<KnownDirectory*>> grids_{};
};

}  // namespace troupe::store
