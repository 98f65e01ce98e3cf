/// Suggestions for misspelt words. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

/// How far `wrong` is from `known`, if the user may have meant it; smaller is nearer, 0 is equal. Near is: at most a third of the letters
/// differ (a swap of neighbours is one edit); one begins with the other (three letters at least); one is a whole word of the other
/// ("batch_size": "batch"), or its initials ("learning_rate": "lr"). Leading dashes do not count.
[[nodiscard]] std::optional<double> distance_if_near(std::string_view wrong, std::string_view known);

/// The nearest of `known`; empty when none is near.
[[nodiscard]] std::string nearest_word(std::string_view wrong, const std::vector<std::string>& known);

enum class Quotes : bool { no, yes };
/// For messages: " (nearest: step)", or " (nearest: "step")" with `quotes`; empty when no word is near.
[[nodiscard]] std::string nearest_hint(std::string_view wrong, const std::vector<std::string>& known, Quotes quotes);

/// The words of a name: "learning_rate" has two. Dashes, dots and blanks divide, too.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view name);

}  // namespace troupe::core
