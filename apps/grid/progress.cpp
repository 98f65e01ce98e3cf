#include "apps/grid/progress.hpp"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/text/plural.hpp"
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
      color_(live_ && report::allows_color()),
      stream_(stream) {
  if (live_) region_ = std::make_unique<report::LiveRegion>(stream, color_);
}

void Progress::put(const StyledLine& line) {
  if (quiet_) return;
  if (region_) {
    for (const auto& part : line.wrapped(region_->size().columns - 1)) region_->print(part);
    return;
  }
  // Not fmt::print, which throws where nothing can be written: a closed terminal must not end the grid, and its runs with it.
  const auto text = line.render(std::size_t{1} << 20, false) + '\n';
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

void Progress::line(const std::string& text) { put(report::note_line({experiment::Note::Level::info, text})); }

void Progress::began(const GridRun& run, bool resumed) {
  if (!live_) put(StyledLine(fmt::format("{} {}", resumed ? "going on with" : "starting", run.name)));
}

void Progress::ended(const GridRun& run, const RunStatus& run_status, double seconds, const GridPosition& position) {
  StyledLine text(fmt::format("{}/{} ", position.ended, position.runs));
  text.add(std::string(name(run_status.status)), style_of(run_status.status)).add(" ").add(run.name, Style::bold);
  if (run_status.status == Status::done)
    text.add(result_text(run_status.summary));
  else if (run_status.status != Status::interrupted && !run_status.error.empty())  // the same grid goes on with it
    text.add(fmt::format(" (exit {}): {}", run_status.exit_code, run_status.error));
  text.field(fmt::format(", {}", report::clock_time(seconds)), Style::dim);
  if (position.left_s) text.field(fmt::format(", forecast: {} left", forecast_text(position.left_s)), Style::dim);
  put(text);
}

void Progress::tick(const GridPosition& position) {
  if (!region_) return tell(position);
  StyledLine text(fmt::format("{}/{} {}", position.ended, position.runs, core::noun(position.runs, "run")),
                  Style::bold);
  if (position.failed > 0) text.field(fmt::format(", {} failed", position.failed), Style::red);
  text.field(!position.note.empty()
                 ? "  " + position.note
                 : fmt::format("  forecast: {}{}", forecast_text(position.left_s), position.left_s ? " left" : ""));
  std::vector<StyledLine> lines;
  for (const auto& run : position.running) {
    auto& line = lines.emplace_back(run.name, Style::cyan);
    for (std::string_view rest = run.progress;
         !rest.empty();) {  // field by field: a narrow terminal loses the last ones
      const auto end = std::min(rest.find(", "), rest.size());
      line.field("  " + std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
  }
  lines.push_back(std::move(text));
  region_->draw(lines);
}

void Progress::tell(const GridPosition& position) {
  constexpr std::chrono::seconds kEvery{5};
  const auto now = std::chrono::steady_clock::now();
  if (quiet_ || now - told_ < kEvery) return;
  told_ = now;
  for (const auto& run : position.running)
    if (!run.progress.empty()) line(fmt::format("{}: {}", run.name, run.progress));
}

std::string progress_of(std::string_view plain_output) {
  constexpr std::string_view kSign = "epoch ";
  auto at = plain_output.rfind("\nepoch ");
  at = at != std::string_view::npos ? at + 1 : plain_output.starts_with(kSign) ? 0 : std::string_view::npos;
  if (at == std::string_view::npos) return {};
  auto line = plain_output.substr(at, plain_output.find('\n', at) - at);
  std::vector<std::string_view> shown;
  while (!line.empty()) {  // fields are two or more spaces apart
    const auto end = std::min(line.find("  "), line.size());
    const auto field = line.substr(0, end);
    if (shown.empty() || field.ends_with('%') || field.starts_with("loss ")) shown.push_back(field);
    line.remove_prefix(end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

void Progress::close() {
  if (region_) region_->close();
}

}  // namespace troupe::grid
