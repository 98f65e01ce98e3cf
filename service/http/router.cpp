#include "service/http/router.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::service {
namespace {

std::vector<std::string> divided(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    parts.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Without overlong forms, surrogates and values above U+10FFFF.
bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const auto first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    if (length > 2) {
      const auto second = byte(i + 1);
      if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) || (first == 0xf0 && second < 0x90) ||
          (first == 0xf4 && second >= 0x90))
        return false;
    }
    i += length;
  }
  return true;
}

bool is_name(const std::string& segment) {
  const auto forbidden = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  if (!is_utf8(segment) || std::ranges::any_of(segment, forbidden)) return false;
  const auto parts = divided(segment);
  return std::ranges::none_of(parts, [&](const std::string& part) {
    return part == "." || part == ".." || (part.empty() && parts.size() > 1);
  });
}

bool is_parameter(const std::string& segment) { return segment.starts_with("{") && segment.ends_with("}"); }

}  // namespace

std::optional<std::vector<std::string>> path_segments(std::string_view path) {
  if (!path.starts_with("/")) return std::nullopt;
  auto segments = divided(path.substr(1));
  for (auto& segment : segments) {
    auto decoded = percent_decoded(segment);
    if (!decoded || !is_name(*decoded)) return std::nullopt;
    segment = std::move(*decoded);
  }
  return segments;
}

void Router::add(Route route) {
  if (!route.pattern.starts_with("/")) throw std::logic_error("a pattern begins with /: " + route.pattern);
  for (const auto& other : routes_)
    if (other.method == route.method && other.pattern == route.pattern)
      throw std::logic_error(fmt::format("{} {} has two handlers", name(route.method), route.pattern));
  segments_.push_back(divided(std::string_view(route.pattern).substr(1)));
  routes_.push_back(std::move(route));
}

RouteMatch Router::match(Method method, std::string_view path) const {
  RouteMatch found;
  const auto segments = path_segments(path);
  if (!segments) {
    found.malformed = true;
    return found;
  }
  std::size_t fewest = segments->size() + 1;  // parameters: a path that is spelt out goes before a pattern
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const auto& pattern = segments_[i];
    if (pattern.size() != segments->size()) continue;
    std::size_t parameters = 0;
    bool fits = true;
    for (std::size_t k = 0; k < pattern.size() && fits; ++k) {
      const bool any = is_parameter(pattern[k]);
      fits = any ? !(*segments)[k].empty() : pattern[k] == (*segments)[k];
      parameters += any ? 1 : 0;
    }
    if (!fits) continue;
    const auto own = routes_[i].method;
    if (own != method && !(own == Method::get && method == Method::head)) {
      if (std::ranges::find(found.allowed, own) == found.allowed.end()) found.allowed.push_back(own);
      continue;
    }
    if (parameters >= fewest) continue;
    fewest = parameters;
    found.route = &routes_[i];
    found.parameters.clear();
    for (std::size_t k = 0; k < pattern.size(); ++k)
      if (is_parameter(pattern[k])) found.parameters[pattern[k].substr(1, pattern[k].size() - 2)] = (*segments)[k];
  }
  if (found.route != nullptr) found.allowed.clear();
  return found;
}

}  // namespace troupe::service
