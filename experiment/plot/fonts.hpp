/// Which characters pictures can show. A character that no installed font has would be a box, so pictures write numbers instead of names
/// that contain one. scripts/setup installs fonts with Chinese, Japanese, Korean and emoji. One thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/plot/grid_record.hpp"
#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

class Fonts {
 public:
  virtual ~Fonts() = default;
  /// Whether an installed font has this character.
  [[nodiscard]] virtual bool have(char32_t character) = 0;
};

/// The fonts that fontconfig knows: gnuplot draws with them. Runs its program fc-list once for each character that is not Latin; without that
/// program only Latin characters count as installed.
class InstalledFonts final : public Fonts {
 public:
  [[nodiscard]] bool have(char32_t character) override;

 private:
  std::map<char32_t, bool> known_;
};

/// Whether all characters of `text` can be drawn. Marks that only join or vary their neighbours do not count.
[[nodiscard]] bool can_draw(Fonts& fonts, std::string_view text);

/// A name that was replaced in the pictures.
struct ReplacedName {
  std::string name, shown;
};
/// One line for the user, because a picture cannot say which name its number stands for.
[[nodiscard]] std::string explanation(const ReplacedName& replaced);

/// Gives runs whose labels cannot be drawn their number: "run 2" is the second.
[[nodiscard]] std::vector<ReplacedName> replace_labels(std::vector<RunRecord>& runs, Fonts& fonts);

/// The same for the names of a grid, of its configurations and of its values: "grid", "configuration 1", "value 3".
[[nodiscard]] std::vector<ReplacedName> replace_labels(GridRecord& grid, Fonts& fonts);

}  // namespace troupe::plot
