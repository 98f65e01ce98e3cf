#include "tests/histories/history.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace troupe::histories {

namespace {

constexpr std::array kNames{"kill",  "freeze", "silence", "start",    "interrupt",
                            "crash", "cut",    "last",    "evaluate", "intrude"};

bool names_node(Doing what) { return what <= Doing::start; }
bool resumes(Doing what) { return what >= Doing::interrupt && what <= Doing::last; }

/// Reads a number at the front of `text` and removes it.
std::optional<std::uint32_t> number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

core::Result<Event> refuse(std::string_view word) {
  return core::fail(core::Errc::config,
                    fmt::format("\"{}\" is no event: kill:1+30, interrupt:2/4+40 or evaluate+5", word));
}

core::Result<Event> parse_event(std::string_view word) {
  auto rest = word;
  const auto name = rest.substr(0, rest.find_first_of(":+"));
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return refuse(word);
  rest.remove_prefix(name.size());
  Event event{.what = static_cast<Doing>(found - kNames.begin())};
  if (names_node(event.what) || resumes(event.what)) {
    const auto first = take(rest, ':') ? number(rest) : std::nullopt;
    if (!first) return refuse(word);
    (resumes(event.what) ? event.nodes : event.node) = *first;
  }
  if (resumes(event.what)) {
    const auto workers = take(rest, '/') ? number(rest) : std::nullopt;
    if (!workers || *workers == 0 || *workers < event.nodes) return refuse(word);
    event.workers = *workers;
  }
  const auto after = take(rest, '+') ? number(rest) : std::nullopt;
  if (!after || !rest.empty()) return refuse(word);
  event.after = *after;
  return event;
}

/// Reads a field such as "workers=3". Empty: `word` is not a field.
std::optional<bool> read_field(std::string_view word, History& into) {
  const auto equals = word.find('=');
  const auto key = word.substr(0, equals);
  auto text = equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
  const auto value = number(text);
  if (!value || !text.empty()) return std::nullopt;
  if (key == "tls") return into.tls = *value != 0, true;
  for (const auto& [name, field] :
       {std::pair{"workers", &into.workers}, {"nodes", &into.nodes}, {"late", &into.late}, {"epochs", &into.epochs}})
    if (key == name) return *field = *value, true;
  return std::nullopt;
}

}  // namespace

std::string History::setting(std::string_view key) const {
  std::string value;
  for (const auto& setting : settings)
    if (setting.starts_with(key) && setting.size() > key.size() && setting[key.size()] == '=')
      value = setting.substr(key.size() + 1);
  return value;
}

std::string to_text(const Event& event) {
  std::string text = kNames[static_cast<std::size_t>(event.what)];
  if (names_node(event.what)) text += fmt::format(":{}", event.node);
  if (resumes(event.what)) text += fmt::format(":{}/{}", event.nodes, event.workers);
  return text + fmt::format("+{}", event.after);
}

std::string to_text(const History& history) {
  auto text = fmt::format("workers={} nodes={}", history.workers, history.nodes);
  if (history.late > 0) text += fmt::format(" late={}", history.late);
  if (history.epochs > 0) text += fmt::format(" epochs={}", history.epochs);
  if (history.tls) text += " tls=1";
  for (auto setting : history.settings) {
    std::ranges::replace(setting, ' ', '~');
    text += ' ' + setting;
  }
  text += " |";
  for (const auto& event : history.events) text += ' ' + to_text(event);
  return text;
}

core::Result<History> parse(std::string_view text) {
  History history;
  std::istringstream words{std::string(text)};
  bool events = false;
  for (std::string word; words >> word;) {
    if (!events && word == "|") {
      events = true;
    } else if (events) {
      const auto event = parse_event(word);
      if (!event) return tl::unexpected(event.error());
      if (names_node(event->what) && event->node >= history.nodes)
        return core::fail(core::Errc::config, fmt::format("\"{}\": there are {} nodes", word, history.nodes));
      history.events.push_back(*event);
    } else if (const auto equals = word.find('=');
               equals != std::string::npos && word.substr(0, equals).find('.') != std::string::npos) {
      std::ranges::replace(word, '~', ' ');
      history.settings.push_back(word);
    } else if (!read_field(word, history)) {
      return core::fail(core::Errc::config,
                        fmt::format("\"{}\" is neither a setting nor workers=, nodes=, late=, epochs= or tls=", word));
    }
  }
  if (history.workers == 0 || history.workers < history.nodes || (history.late > 0 && history.late >= history.nodes))
    return core::fail(core::Errc::config,
                      "a history has a worker for each node, and a node that is there when it begins");
  return history;
}

}  // namespace troupe::histories
