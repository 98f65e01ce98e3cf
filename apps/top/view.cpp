#include "apps/top/view.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace troupe::apps {
namespace {

Key key_of_letter(char c) {
  switch (c) {
    case 'q':
    case 'Q':
    case '\x03': return Key::quit;  // Ctrl-C: the terminal sends no signals
    case '\x1a': return Key::suspend;
    case '\x0c': return Key::redraw;
    case '?':
    case 'h': return Key::help;
    case '\t': return Key::next_tab;
    case '1': return Key::first_tab;
    case '2': return Key::second_tab;
    case '3': return Key::third_tab;
    case '4': return Key::fourth_tab;
    case '5': return Key::fifth_tab;
    case 's': return Key::sort;
    case 'r': return Key::reverse;
    case 'k': return Key::up;
    case 'j': return Key::down;
    case 'b': return Key::page_up;
    case ' ':
    case 'f': return Key::page_down;
    case 'g': return Key::home;
    case 'G': return Key::end;
    default: return Key::none;
  }
}

struct Sequence {
  std::string_view text;
  Key key;
};
constexpr std::array<Sequence, 13> kSequences{{{"[A", Key::up},
                                               {"[B", Key::down},
                                               {"OA", Key::up},
                                               {"OB", Key::down},
                                               {"[5~", Key::page_up},
                                               {"[6~", Key::page_down},
                                               {"[H", Key::home},
                                               {"[F", Key::end},
                                               {"OH", Key::home},
                                               {"OF", Key::end},
                                               {"[1~", Key::home},
                                               {"[4~", Key::end},
                                               {"[Z", Key::previous_tab}}};

/// How many bytes behind an escape belong to it; nothing: more may come.
std::optional<std::size_t> length_of_sequence(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text[0] == 'O') return text.size() < 2 ? std::nullopt : std::optional<std::size_t>(2);
  if (text[0] != '[') return 0;  // Escape, and then another key
  for (std::size_t i = 1; i < text.size(); ++i)
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  constexpr std::size_t kLongest = 32;
  return text.size() > kLongest ? std::optional(text.size()) : std::nullopt;
}

Tab neighbour(Tab tab, std::size_t step) {
  return static_cast<Tab>((static_cast<std::size_t>(tab) + step) % kTabNames.size());
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes, bool pause) {
  held_ += bytes;
  std::vector<Key> keys;
  std::string_view rest = held_;
  while (!rest.empty()) {
    if (rest.front() != '\x1b') {
      if (const auto key = key_of_letter(rest.front()); key != Key::none) keys.push_back(key);
      rest.remove_prefix(1);
      continue;
    }
    const auto length = length_of_sequence(rest.substr(1));
    if (!length && !pause) break;
    const auto sequence = rest.substr(1, length.value_or(rest.size() - 1));
    const auto* const known = std::ranges::find(kSequences, sequence, &Sequence::text);
    if (known != kSequences.end()) keys.push_back(known->key);
    if (sequence.empty()) keys.push_back(Key::escape);
    rest.remove_prefix(1 + sequence.size());
  }
  held_.assign(rest);
  return keys;
}

void View::press(Key key) {
  const auto show = [this](Tab chosen) {
    tab = chosen;
    scroll = 0;
    help = false;
  };
  switch (key) {
    case Key::help: help = !help; break;
    case Key::escape: help = false; break;
    case Key::next_tab: show(neighbour(tab, 1)); break;
    case Key::previous_tab: show(neighbour(tab, kTabNames.size() - 1)); break;
    case Key::first_tab: show(Tab::overview); break;
    case Key::second_tab: show(Tab::workers); break;
    case Key::third_tab: show(Tab::waits); break;
    case Key::fourth_tab: show(Tab::notes); break;
    case Key::fifth_tab: show(Tab::members); break;
    case Key::sort:
      sort = static_cast<Sort>((static_cast<std::size_t>(sort) + 1) % kSortNames.size());
      scroll = 0;
      break;
    case Key::reverse: reversed = !reversed; break;
    case Key::up: scroll -= std::min<std::size_t>(scroll, 1); break;
    case Key::down: ++scroll; break;
    case Key::page_up: scroll -= std::min(scroll, page); break;
    case Key::page_down: scroll += page; break;
    case Key::home: scroll = 0; break;
    case Key::end: scroll = std::numeric_limits<std::size_t>::max() / 2; break;
    case Key::none:
    case Key::quit:
    case Key::suspend:
    case Key::redraw: break;
  }
}

}  // namespace troupe::apps
