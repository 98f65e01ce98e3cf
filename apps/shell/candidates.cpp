#include "apps/shell/candidates.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "apps/help.hpp"

namespace troupe::apps {
namespace {

/// Reads the words before the one that is being typed, as the parser would.
class Line {
 public:
  Line(const std::list<Parsed>& all, const std::vector<std::string>& words) : all_(all), at_(&all.front()) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) read(words[i]);
    if (!words.empty()) begun_ = words.back();
  }

  [[nodiscard]] ValueCandidates candidates() const {
    if (wrong_) return {};
    if (behind_dashes_) return values_of_argument();
    if (helping_) return topics();
    if (open_ != nullptr) return values(*open_, begun_);
    if (const auto equals = begun_.find('='); begun_.starts_with("--") && equals != std::string::npos) {
      const auto* option = option_called(begun_.substr(0, equals));
      if (option == nullptr || !takes_value(*option)) return {};
      auto found = values(*option, std::string_view(begun_).substr(equals + 1));
      for (auto& word : found.words) word.text = begun_.substr(0, equals + 1) + word.text;
      return found;
    }
    if (begun_.starts_with("-")) return flags();
    auto found = at_->command->subcommands.empty() ? values_of_argument() : subcommands();
    if (found.words.empty() && found.paths == Paths::none && begun_.empty()) return flags();
    return found;
  }

 private:
  void read(const std::string& word) {
    if (behind_dashes_) return;
    if (open_ != nullptr) {
      if (is_flag(open_, "--dir")) directory_ = word;
      open_ = nullptr;
      return;
    }
    if (word == "--") {
      behind_dashes_ = true;
    } else if (word == "--help" || word == "-h") {
      helping_ = true;
    } else if (word.starts_with("-") && word.size() > 1) {
      read_flag(word);
    } else if (helping_ && at_->command->subcommands.empty()) {
      wrong_ = std::exchange(has_topic_, true);
    } else if (at_ == &all_.front() && word == "help") {
      helping_ = true;
    } else if (const auto* next = subcommand(all_, *at_, word)) {
      at_ = next;
    } else if (!at_->command->subcommands.empty()) {
      wrong_ = true;
    } else {
      ++arguments_;
    }
  }

  void read_flag(const std::string& word) {
    const auto equals = word.find('=');
    const auto* option = option_called(word.substr(0, equals));
    if (option == nullptr) {
      wrong_ = true;
      return;
    }
    given_.push_back(option);
    if (!takes_value(*option)) return;
    if (equals == std::string::npos)
      open_ = option;
    else if (is_flag(option, "--dir"))
      directory_ = word.substr(equals + 1);
  }

  static bool is_flag(const CLI::Option* option, const char* name) { return option->check_name(name); }

  [[nodiscard]] const CLI::Option* option_called(const std::string& name) const {
    for (const auto* option : at_->app->get_options())
      if (!option->get_positional() && option->check_name(name)) return option;
    return nullptr;
  }

  [[nodiscard]] ValueCandidates values(const CLI::Option& option, std::string_view begun) const {
    return keep(values_of(option, *at_->app, begun, directory_), begun);
  }

  [[nodiscard]] ValueCandidates values_of_argument() const {
    std::size_t skipped = 0;
    for (const auto* option : at_->app->get_options()) {
      if (!option->get_positional()) continue;
      if (skipped == arguments_ || takes_many(*option)) return values(*option, begun_);
      ++skipped;
    }
    return {};
  }

  /// Flags that may still be given.
  [[nodiscard]] ValueCandidates flags() const {
    ValueCandidates found;
    for (const auto* option : at_->app->get_options()) {
      const bool again = takes_many(*option);
      if (option->get_positional() || (!again && std::ranges::find(given_, option) != given_.end())) continue;
      for (const auto& name : option->get_lnames()) found.words.push_back({"--" + name, option->get_description()});
    }
    return keep(std::move(found), begun_);
  }

  [[nodiscard]] ValueCandidates subcommands() const {
    ValueCandidates found;
    for (const auto& sub : at_->command->subcommands)
      if (!sub.hidden) found.words.push_back({sub.name, sub.summary});
    if (at_ == &all_.front() && !helping_) found.words.push_back({"help", "the help of a command"});
    return keep(std::move(found), begun_);
  }

  [[nodiscard]] ValueCandidates topics() const {
    if (!at_->command->subcommands.empty()) return subcommands();
    // Only commands that set keys explain them.
    const bool sets = at_->app->get_option_no_throw("--set") != nullptr;
    if (has_topic_ || !at_->command->appendix || !sets) return {};
    return keep({help_topics(*at_->app, begun_)}, begun_);
  }

  /// Those that begin so.
  static ValueCandidates keep(ValueCandidates found, std::string_view begun) {
    std::erase_if(found.words, [&](const Candidate& word) { return !word.text.starts_with(begun); });
    return found;
  }

  const std::list<Parsed>& all_;
  const Parsed* at_;
  const CLI::Option* open_ = nullptr;  // its value comes next
  std::vector<const CLI::Option*> given_;
  std::size_t arguments_ = 0;
  bool behind_dashes_ = false, helping_ = false, has_topic_ = false, wrong_ = false;
  std::string begun_, directory_ = "runs";
};

}  // namespace

ValueCandidates candidates_for(const std::list<Parsed>& all, const std::vector<std::string>& words) {
  return Line(all, words).candidates();
}

}  // namespace troupe::apps
