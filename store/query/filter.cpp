#include "store/query/filter.hpp"

#include <array>
#include <cctype>

#include <fmt/format.h>

namespace troupe::store {
namespace {

struct Spelling {
  std::string_view text;
  Comparison comparison;
};
constexpr std::array kSpellings{Spelling{"!=", Comparison::unequal},
                                Spelling{"<=", Comparison::less_or_equal},
                                Spelling{">=", Comparison::greater_or_equal},
                                Spelling{"=", Comparison::equal},
                                Spelling{"<", Comparison::less},
                                Spelling{">", Comparison::greater},
                                Spelling{"~", Comparison::contains}};

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) {}

  core::Result<std::vector<Condition>> parse() {
    std::vector<Condition> conditions;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      if (!conditions.empty() && take_and()) skip_blanks();
      auto condition = parse_condition();
      if (!condition) return tl::unexpected(condition.error());
      conditions.push_back(std::move(*condition));
    }
    return conditions;
  }

 private:
  core::Result<Condition> parse_condition() {
    Condition condition;
    condition.column = at_ + 1;
    while (at_ < text_.size() && is_of_key(text_[at_])) condition.key += text_[at_++];
    if (condition.key.empty()) return refused("a key is expected, as in accuracy>0.9");
    skip_blanks();
    const Spelling* found = nullptr;
    for (const auto& spelling : kSpellings)
      if (found == nullptr && text_.substr(at_).starts_with(spelling.text)) found = &spelling;
    if (found == nullptr) return refused(fmt::format("= != < <= > >= or ~ is expected after \"{}\"", condition.key));
    condition.comparison = found->comparison;
    at_ += found->text.size();
    skip_blanks();
    auto value = parse_value();
    if (!value) return tl::unexpected(value.error());
    condition.value = std::move(*value);
    return condition;
  }

  core::Result<std::string> parse_value() {
    std::string value;
    if (at_ == text_.size()) return refused("a value is expected; \"\" is empty text");
    if (text_[at_] != '"') {
      while (at_ < text_.size() && !is_blank(text_[at_])) value += text_[at_++];
      return value;
    }
    const auto begin = at_++;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ == text_.size()) {
      at_ = begin;
      return refused("this quote has no end");
    }
    ++at_;
    if (at_ < text_.size() && !is_blank(text_[at_])) return refused("a blank is expected after a quote");
    return value;
  }

  bool take_and() {
    constexpr std::string_view kAnd = "and";
    const auto rest = text_.substr(at_);
    if (!rest.starts_with(kAnd) || rest.size() == kAnd.size() || !is_blank(rest[kAnd.size()])) return false;
    auto after = rest.find_first_not_of(" \t\n", kAnd.size());
    if (after != std::string_view::npos && std::string_view("=!<>~").find(rest[after]) != std::string_view::npos)
      return false;  // a key of this name
    at_ += kAnd.size();
    return true;
  }

  [[nodiscard]] tl::unexpected<core::Error> refused(const std::string& what) const {
    return core::fail(core::Errc::usage, fmt::format("filter \"{}\", column {}: {}", text_, at_ + 1, what));
  }

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
  static bool is_of_key(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

core::Result<std::vector<Condition>> parse_filter(std::string_view text) { return FilterParser(text).parse(); }

}  // namespace troupe::store
