#include "apps/watch/service_lines.hpp"

#include <fmt/format.h>

#include "apps/client/json_values.hpp"
#include "apps/watch/run_lines.hpp"
#include "core/text/display.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

std::string shown_at(const StateJson& row, const char* key) { return core::printable(text_at(row, key)); }

bool under_way(std::string_view state) {
  return state == "running" || state == "queued" || state == "starting" || state == "stopping";
}

std::string on_one_line(const report::StyledLine& line) { return line.render(std::string::npos, false); }

}  // namespace

bool ServiceLines::changed(const std::string& what, std::string said) {
  auto& before = said_[what];
  if (before == said) return false;
  before = std::move(said);
  return true;
}

std::optional<std::string> ServiceLines::job(const StateJson& row, bool first) {
  const auto id = count_at(row, "id");
  const auto state = shown_at(row, "state"), run = shown_at(row, "run"), error = shown_at(row, "error");
  if (id == 0 || state.empty() || !changed(fmt::format("job {}", id), state + '\n' + run)) return std::nullopt;
  if (first && !under_way(state)) return std::nullopt;
  const auto name = shown_at(row, "name");
  auto text = fmt::format("job {}{}: {}", id, name.empty() ? "" : " " + name, state);
  if (!run.empty()) text += ", run " + run;
  if (!error.empty()) text += ": " + error;
  return text;
}

std::optional<std::string> ServiceLines::run(const StateJson& row, bool first) {
  const auto name = shown_at(row, "run"), status = shown_at(row, "status");
  if (name.empty() || status.empty() || !changed("run " + name, status)) return std::nullopt;
  if (first && !under_way(status)) return std::nullopt;
  auto text = fmt::format("run {}: {}", name, status);
  if (const auto accuracy = number_at(row, "accuracy"); accuracy && status != "running")
    text += fmt::format(", test accuracy {:.2f} %", 100 * *accuracy);
  return text;
}

std::optional<std::string> ServiceLines::node(const StateJson& row, bool first) {
  const auto address = shown_at(row, "address"), state = shown_at(row, "state"), error = shown_at(row, "error");
  if (address.empty() || state.empty() || !changed("node " + address, state)) return std::nullopt;
  if (first && state == "alive") return std::nullopt;
  return fmt::format("node {}: {}{}", address, state, error.empty() ? "" : ": " + error);
}

std::optional<std::string> ServiceLines::of_run(const std::string& run, const StateJson& line) {
  const auto kind = text_at(line, "kind");
  const auto said = [&](const std::string& text) { return fmt::format("run {}: {}", core::printable(run), text); };
  if (kind == "started") return said(on_one_line(report::started_line(started_of(line))));
  if (kind == "epoch") return said(on_one_line(report::epoch_line(epoch_of(line))));
  if (kind == "evaluation") return said(on_one_line(report::evaluation_line(evaluation_of(line))));
  if (kind == "note") return said(on_one_line(report::note_line(note_of(line))));
  if (kind == "ended") {
    const auto error = error_of_end(line);
    return said(error ? fmt::format("ended: {}", error->message)
                      : fmt::format("ended after {}", report::clock_time(number_at(line, "wall_s").value_or(-1))));
  }
  return std::nullopt;
}

}  // namespace troupe::apps
