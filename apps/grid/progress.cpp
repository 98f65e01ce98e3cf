#include "apps/grid/progress.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiment/report/console_text.hpp"

namespace troupe::grid {
namespace {

using report::Style;
using report::StyledLine;

/// ": accuracy 98.91 %, 4,501 images/s", as far as the summary has them.
std::string result_text(const std::string& summary) {
  const auto json = nlohmann::json::parse(summary, nullptr, false);
  if (!json.is_object()) return {};
  using Pointer = nlohmann::json::json_pointer;
  std::string text;
  if (const auto accuracy = json.value(Pointer("/test/accuracy"), nlohmann::json()); accuracy.is_number())
    text += fmt::format(": accuracy {:.2f} %", 100 * accuracy.get<double>());
  if (const auto rate = json.value(Pointer("/train/images_per_s"), nlohmann::json()); rate.is_number())
    text += fmt::format("{} {} images/s", text.empty() ? ":" : ",",
                        report::grouped(static_cast<std::uint64_t>(rate.get<double>())));
  return text;
}

Style style_of(Status status) {
  return status == Status::done ? Style::green : status == Status::failed ? Style::red : Style::yellow;
}

}  // namespace

std::string forecast_text(std::optional<double> seconds) {
  return seconds ? "about " + report::clock_time(*seconds) : "unknown until a run has ended";
}

Progress::Progress(ProgressMode mode, std::FILE* stream)
    : quiet_(mode == ProgressMode::quiet),
      live_(mode == ProgressMode::automatic && ::isatty(::fileno(stream)) == 1),
      color_(live_ && std::getenv("NO_COLOR") == nullptr),
      stream_(stream) {
  if (live_) region_ = std::make_unique<report::LiveRegion>(stream, color_);
}

void Progress::put(const StyledLine& line) {
  if (quiet_) return;
  if (region_) {
    region_->print(line);
    return;
  }
  fmt::print(stream_, "{}\n", line.render(std::size_t{1} << 20, false));
  std::fflush(stream_);
}

void Progress::line(const std::string& text) { put(StyledLine(text)); }

void Progress::began(const GridRun& run, bool resumed) {
  if (!live_) put(StyledLine(fmt::format("{} {}", resumed ? "going on with" : "starting", run.name)));
}

void Progress::ended(const GridRun& run, const RunStatus& run_status, double seconds, const GridPosition& position) {
  StyledLine text(fmt::format("{}/{} ", position.ended, position.runs));
  text.add(std::string(name(run_status.status)), style_of(run_status.status)).add(" ").add(run.name, Style::bold);
  if (run_status.status == Status::done)
    text.add(result_text(run_status.summary));
  else if (!run_status.error.empty())
    text.add(fmt::format(" (exit {}): {}", run_status.exit_code, run_status.error));
  text.add(fmt::format(", {}", report::clock_time(seconds)), Style::dim);
  if (position.left_s) text.add(fmt::format(", forecast: {} left", forecast_text(position.left_s)), Style::dim);
  put(text);
}

void Progress::tick(const GridPosition& position) {
  if (!region_) return;
  StyledLine text(fmt::format("{}/{} runs", position.ended, position.runs), Style::bold);
  if (position.failed > 0) text.add(fmt::format(", {} failed", position.failed), Style::red);
  text.add(fmt::format("  forecast: {}{}  ", forecast_text(position.left_s), position.left_s ? " left" : ""));
  text.add(fmt::format("{}", fmt::join(position.running, "  ")), Style::cyan);
  region_->draw({text});
}

void Progress::close() {
  if (region_) region_->close();
}

}  // namespace troupe::grid
