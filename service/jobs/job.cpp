#include "service/jobs/job.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace troupe::service {
namespace {

constexpr std::array kKindNames{std::pair{JobKind::train, std::string_view("train")},
                                std::pair{JobKind::launch, std::string_view("launch")},
                                std::pair{JobKind::grid, std::string_view("grid")}};

/// The name becomes the name of a file.
bool is_name(std::string_view text) {
  const auto is_bad = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '/' || c == '\\'; };
  return !text.empty() && text.size() <= kLongestJobName && text.front() != '.' && text.front() != '-' &&
         std::ranges::none_of(text, is_bad);
}

}  // namespace

std::string_view name(JobKind kind) noexcept {
  return std::ranges::find(kKindNames, kind, &std::pair<JobKind, std::string_view>::first)->second;
}

std::optional<JobKind> job_kind(std::string_view text) noexcept {
  const auto* const found = std::ranges::find(kKindNames, text, &std::pair<JobKind, std::string_view>::second);
  if (found == kKindNames.end()) return std::nullopt;
  return found->first;
}

core::Result<void> check_spec(const JobSpec& spec) {
  const auto refuse = [](std::string text) { return core::fail(core::Errc::config, std::move(text)); };
  if (!is_name(spec.name))
    return refuse(
        fmt::format("name: a job's name has 1 to {} bytes, does not begin with '.' or '-', and has no '/', "
                    "'\\' or control characters",
                    kLongestJobName));
  const bool launch = spec.kind == JobKind::launch;
  if (!launch && spec.config.empty()) return refuse(fmt::format("config: a job of kind {} needs one", name(spec.kind)));
  if (launch && spec.command.empty() && spec.config.empty())
    return refuse("command: a launch needs the program and its arguments, or a config with model.command");
  if (!launch && !spec.command.empty())
    return refuse(fmt::format("command: only a launch has one; this is a job of kind {}", name(spec.kind)));
  return {};
}

}  // namespace troupe::service
