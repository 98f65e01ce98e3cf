#include "experiment/report/console_text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/text/plural.hpp"
#include "experiment/summary.hpp"
#include "strategies/host/accounts.hpp"

namespace troupe::report {
namespace {

constexpr std::size_t kWideColumns = 110;    // below, a worker's line is shortened to 80 columns
constexpr std::size_t kClosingColumns = 79;  // below, the closing table has no seconds

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

double busy_s(const experiment::WorkerProgress& w) { return w.compute_s + w.exchange_s + w.wait_s + w.load_s; }

double rate(std::uint64_t samples, double seconds) { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }

/// "-" while no speed has been measured.
std::string rate_text(double images_per_s) {
  if (!(images_per_s > 0)) return "-";
  return grouped(static_cast<std::uint64_t>(std::llround(std::max(0.0, images_per_s))));
}

std::string staleness_text(double mean, std::uint64_t most) { return fmt::format("{:.1f} ({})", mean, most); }

StyledLine closing_head(bool wide) {
  if (!wide)
    return StyledLine(fmt::format("{:>6}{:>9}{:>10}{:>6}{:>6}{:>10}", "worker", "compute", "exchange", "wait", "load",
                                  "images/s"),
                      Style::dim)
        .field("  stale", Style::dim);
  return StyledLine(fmt::format("{:>6}{:>13}{:>13}{:>13}{:>13} {:>8}", "worker", "compute", "exchange", "wait", "load",
                                "images/s"),
                    Style::dim)
      .field("  stale", Style::dim);
}

StyledLine closing_row(const std::string& label, const experiment::TimeShares& time, double images_per_s,
                       const std::string& staleness, bool wide) {
  StyledLine row(fmt::format("{:>6}", label), Style::bold);
  const double total = time.total_s();
  const auto share = [&](double part) { return total > 0 ? 100 * part / total : 0.0; };
  if (wide) {
    for (const double part : {time.compute_s, time.exchange_s, time.wait_s, time.load_s})
      row.add(fmt::format("{:>7.1f}s{:>4.0f}%", part, share(part)));
    return row.add(fmt::format(" {:>8}", rate_text(images_per_s))).field("  " + staleness);
  }
  row.add(fmt::format("{:>8.0f}%{:>9.0f}%{:>5.0f}%{:>5.0f}%", share(time.compute_s), share(time.exchange_s),
                      share(time.wait_s), share(time.load_s)));
  return row.add(fmt::format("{:>10}", rate_text(images_per_s))).field("  " + staleness);
}

/// At most `most` values; the last one includes all higher ones.
StyledLine staleness_line_of(const experiment::WorkerProgress& worker, std::size_t most) {
  const auto& edges = strategies::StalenessHistogram::kEdges;
  StyledLine line(fmt::format("{:>6}", worker.worker), Style::bold);
  std::vector<double> counts;
  std::vector<std::string> names;
  for (std::size_t bin = 0; bin < worker.staleness.size() && bin < edges.size(); ++bin) {
    const auto count = static_cast<double>(worker.staleness[bin]);
    if (count == 0) continue;
    const bool last = names.size() == most;
    if (last) {
      counts.back() += count;
      const auto& name = names.back();
      names.back() = name.substr(0, name.find_first_of("-+")) + "+";
      continue;
    }
    const bool open = bin + 1 == edges.size();
    const bool single = !open && edges[bin + 1] == edges[bin] + 1;
    counts.push_back(count);
    names.push_back(open     ? fmt::format("{}+", edges[bin])
                    : single ? fmt::format("{}", edges[bin])
                             : fmt::format("{}-{}", edges[bin], edges[bin + 1] - 1));
  }
  const auto shares = percentages(counts);
  for (std::size_t i = 0; i < shares.size(); ++i) line.field(fmt::format("  {}: {}%", names[i], shares[i]));
  return line;
}

/// Marks a share of idle time that deserves attention.
Style standing_still(int percent) { return percent >= 20 ? Style::yellow : Style::plain; }

}  // namespace

std::string grouped(std::uint64_t number) {
  const auto digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}", grouped(number), core::noun(number, noun));
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e8) return "-:--";
  const auto s = std::llround(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string loss_text(double loss) {
  if (std::isnan(loss)) return "nan";  // its sign means nothing
  return std::isfinite(loss) && std::abs(loss) < 10 ? fmt::format("{:.4f}", loss) : fmt::format("{:.4g}", loss);
}

std::string loss_text(const experiment::WorkerProgress& worker) {
  return worker.samples > 0 ? loss_text(worker.loss) : "-";
}

std::vector<int> percentages(const std::vector<double>& parts) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int> whole(parts.size(), 0);
  if (!(sum > 0)) return whole;
  // Round down, then give the missing percents to the largest remainders.
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto exact = [&](std::size_t i) { return 100 * parts[i] / sum; };
  for (const auto i : order) whole[i] = static_cast<int>(exact(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return exact(a) - whole[a] > exact(b) - whole[b]; });
  const int missing = 100 - std::accumulate(whole.begin(), whole.end(), 0);
  for (int i = 0; i < missing; ++i) ++whole[order[static_cast<std::size_t>(i) % order.size()]];
  return whole;
}

StyledLine started_line(const experiment::RunStarted& run) {
  StyledLine line(run.name, Style::bold);
  line.add(fmt::format(": {} on {}", run.strategy, run.dataset));
  line.field(fmt::format(", {} ({} parameters)", run.model, grouped(run.parameters)));
  line.field(fmt::format(", {}", counted(run.workers, "worker")));
  if (run.servers > 0) line.field(fmt::format(", {}", counted(run.servers, "server")));
  if (run.epoch_position > 0) line.field(fmt::format(", going on from epoch {:.2f}", run.epoch_position));
  return line;
}

StyledLine directory_line(const std::string& directory) {
  return StyledLine("run directory ", Style::dim).add(directory);
}

StyledLine worker_line(const experiment::WorkerProgress& worker, double images_per_s, std::size_t columns) {
  const auto shares = percentages({worker.compute_s, worker.exchange_s, worker.wait_s, worker.load_s});
  const bool wide = columns >= kWideColumns;
  const StyledLine name(fmt::format("worker {}", worker.worker), Style::bold);
  const auto steps = grouped(worker.steps), speed = rate_text(images_per_s), loss = loss_text(worker);
  StyledLine line = name;
  line.add(wide ? fmt::format("  step {:>8}", steps) : fmt::format(" {:>7}", steps));
  line.field(wide ? fmt::format("  {:>7} images/s", speed) : fmt::format("  {:>6}/s", speed));
  line.field(fmt::format("  loss {:<6}", loss));
  if (wide && worker.staleness_count > 0) line.field(fmt::format("  staleness {:.1f}", mean_staleness(worker)));
  line.field(wide ? "  [compute " : "  [comp ").add(std::to_string(shares[0]), Style::green);
  line.add(" exch ").add(std::to_string(shares[1]), standing_still(shares[1]));
  line.add(" wait ").add(std::to_string(shares[2]), standing_still(shares[2]));
  line.add(" load ").add(std::to_string(shares[3]), standing_still(shares[3])).add("%]");
  if (line.columns() <= columns) return line;
  StyledLine narrow = name;
  narrow.add(fmt::format(" {:>7}", steps)).field(fmt::format("  loss {:<6}", loss));
  narrow.field("  comp ").add(fmt::format("{:>2}", shares[0]), Style::green).add("%");
  narrow.field("  exch ").add(fmt::format("{:>2}", shares[1]), standing_still(shares[1])).add("%");
  narrow.field("  wait ").add(fmt::format("{:>2}", shares[2]), standing_still(shares[2])).add("%");
  narrow.field("  load ").add(fmt::format("{:>2}", shares[3]), standing_still(shares[3])).add("%");
  return narrow.field(fmt::format("  {:>6}/s", speed));
}

std::optional<StyledLine> loss_line(const LossHistory& losses, double lr, std::size_t columns, bool unicode) {
  if (losses.points() < 2) return std::nullopt;
  constexpr std::size_t kShortest = 8, kLongest = 40;
  const auto rate = lr >= 0 ? fmt::format("  lr {:.4g}", lr) : std::string();
  const auto values = [&](const std::vector<double>& means) {
    return fmt::format("  {} {} {}", loss_text(means.front()), unicode ? "→" : "to", loss_text(means.back()));
  };
  const std::size_t others = columns_of("loss  ") + columns_of(values(losses.means(kLongest))) + columns_of(rate);
  const auto means = losses.means(std::clamp(columns > others ? columns - others : 0, kShortest, kLongest));
  StyledLine line("loss  ", Style::bold);
  line.add(sparkline(means, unicode), Style::cyan).field(values(means));
  return rate.empty() ? line : line.field(rate);
}

std::optional<StyledLine> worst_wait_line(const std::vector<experiment::WorkerProgress>& workers) {
  double most = 0;
  double share = 0;
  std::string pair;
  for (const auto& w : workers) {
    for (std::size_t column = 0; column < w.waits.size(); ++column) {
      if (w.waits[column] <= most) continue;
      most = w.waits[column];
      share = most / std::max(busy_s(w), most);
      const bool server = column >= workers.size();
      pair = fmt::format("worker {} for {} {}", w.worker, server ? "server" : "worker",
                         server ? column - workers.size() : column);
    }
  }
  if (share < 0.01) return std::nullopt;
  StyledLine line("longest wait", Style::bold);
  return line.add(fmt::format("  {}: {:.1f} s", pair, most))
      .field(", ")
      .add(fmt::format("{:.0f} % of its time", 100 * share), standing_still(static_cast<int>(100 * share)));
}

StyledLine staleness_line(const experiment::WorkerProgress& worker, std::size_t columns) {
  constexpr std::size_t kMostValues = 7;  // fits 80 columns
  for (std::size_t most = kMostValues; most > 1; --most)
    if (auto line = staleness_line_of(worker, most); line.columns() <= columns) return line;
  return staleness_line_of(worker, 1);
}

std::string bar(double done, std::size_t columns, const StyledLine& before, const std::vector<std::string>& after,
                bool unicode) {
  constexpr std::size_t kShortest = 8, kLongest = 40;
  std::size_t others = before.columns();
  for (const auto& text : after) others += columns_of(text);
  const std::size_t width = std::clamp(columns > others ? columns - others : 0, kShortest, kLongest);
  const auto filled = std::min(width, static_cast<std::size_t>(std::max(done, 0.0) * static_cast<double>(width)));
  std::string text;
  for (std::size_t i = 0; i < filled; ++i) text += unicode ? "━" : "=";
  for (std::size_t i = filled; i < width; ++i) text += unicode ? "─" : "-";
  return text;
}

StyledLine bar_line(const Position& position, std::size_t columns, bool unicode) {
  StyledLine line(fmt::format("epoch {}/{}  ", position.epoch, position.epochs), Style::bold);
  std::vector<std::string> after{fmt::format("  {:>3} %", static_cast<int>(100 * position.fraction))};
  if (position.fraction >= 1) {
    after.emplace_back("  evaluating");
  } else {
    if (position.images_per_s > 0) after.push_back(fmt::format("  {} images/s", rate_text(position.images_per_s)));
    after.push_back(fmt::format("  {} left", clock_time(position.epoch_left_s)));
    after.push_back(fmt::format(", {} to the end", clock_time(position.run_left_s)));
  }
  line.add(bar(position.fraction, columns, line, after, unicode), Style::cyan);
  for (auto& text : after) line.field(std::move(text));
  return line;
}

StyledLine progress_line(const Position& position, std::uint64_t steps, std::optional<double> loss) {
  return StyledLine(fmt::format("epoch {}/{}  {:>3} %  step {}  {} images/s  loss {}{}  {} to the end", position.epoch,
                                position.epochs, static_cast<int>(100 * position.fraction), grouped(steps),
                                rate_text(position.images_per_s), loss ? loss_text(*loss) : "-",
                                position.lr >= 0 ? fmt::format("  lr {:.4g}", position.lr) : "",
                                clock_time(position.run_left_s)));
}

StyledLine epoch_line(const experiment::EpochReport& r) {
  StyledLine line(fmt::format("epoch {}/{}", r.epoch, r.epochs), Style::bold);
  const bool trained = r.images_per_s > 0;           // a resume may begin with the evaluation that an interrupt skipped
  const bool tells_loss = !std::isnan(r.test_loss);  // a program's evaluation need not
  if (trained) line.field(fmt::format("  loss {}", loss_text(r.train_loss)));
  if (tells_loss && trained) line.add(fmt::format(", test {}", loss_text(r.test_loss)));
  if (tells_loss && !trained) line.field(fmt::format("  test {}", loss_text(r.test_loss)));
  if (!std::isnan(r.test_accuracy))  // nor an accuracy
    line.field("  ").add(fmt::format("accuracy {}", percent(r.test_accuracy)), Style::green);
  if (trained) line.field(fmt::format("  {} images/s", rate_text(r.images_per_s)));
  return trained ? line.field(fmt::format("  {}", clock_time(r.train_s))) : line;
}

StyledLine evaluation_line(const experiment::EvaluationReport& r) {
  StyledLine line(fmt::format("{} at epoch {:.2f}", r.validation ? "validation" : "test", r.epoch));
  line.field(fmt::format("  loss {}", loss_text(r.loss)));
  if (std::isnan(r.accuracy)) return line;
  return line.field("  ").add(fmt::format("accuracy {}", percent(r.accuracy)), Style::green);
}

/// A field per word: a narrow terminal does not break it within one.
StyledLine note_line(const experiment::Note& note) {
  StyledLine line;
  if (note.level == experiment::Note::Level::warning) line.add("warning: ", Style::yellow);
  if (note.level == experiment::Note::Level::error) line.add("error: ", Style::red);
  for (std::size_t at = 0; at < note.text.size();) {
    const auto end = std::min(note.text.find(' ', at + 1), note.text.size());
    auto word = note.text.substr(at, end - at);
    at == 0 ? line.add(std::move(word)) : line.field(std::move(word));
    at = end;
  }
  return line;
}

std::optional<StyledLine> slow_loading_line(const std::vector<experiment::WorkerProgress>& workers) {
  constexpr double kNoticeable = 0.05;  // of the workers' time
  const auto time = experiment::average_time(workers);
  if (time.load_s <= kNoticeable * time.total_s()) return std::nullopt;
  return StyledLine(fmt::format("workers stood still {:.0f} % of their time for batches: raise data.decode_threads",
                                100 * time.load_s / time.total_s()),
                    Style::yellow);
}

/// "computing: forward 31 % (30 to 32), backward 62 % (61 to 63), optimizer 7 % (6 to 8) over workers"; none without such times.
std::optional<StyledLine> compute_line(const std::vector<experiment::WorkerProgress>& workers) {
  StyledLine line("computing: ", Style::dim);
  bool first = true;
  for (const auto& [name, part] : {std::pair("forward", &experiment::WorkerProgress::forward_s),
                                   std::pair("backward", &experiment::WorkerProgress::backward_s),
                                   std::pair("optimizer", &experiment::WorkerProgress::optimizer_s)}) {
    double least = 100, most = 0, sum = 0;
    for (const auto& w : workers) {
      const double all = w.forward_s + w.backward_s + w.optimizer_s;
      if (!(w.forward_s > 0)) return std::nullopt;
      const double share = 100 * w.*part / all;
      least = std::min(least, share);
      most = std::max(most, share);
      sum += share;
    }
    auto text = fmt::format("{}{} {:.0f} %", first ? "" : ", ", name, sum / static_cast<double>(workers.size()));
    if (workers.size() > 1) text += fmt::format(" ({:.0f} to {:.0f})", least, most);
    std::exchange(first, false) ? line.add(std::move(text), Style::dim) : line.field(std::move(text), Style::dim);
  }
  return line;
}

std::vector<StyledLine> closing_table(const experiment::RunEnd& end, const std::string& directory,
                                      std::size_t columns) {
  const experiment::Summary& s = end.summary;
  std::vector<StyledLine> lines;
  if (!s.per_worker.empty()) {
    const bool wide = columns >= kClosingColumns;
    lines.push_back(closing_head(wide));
    for (const auto& w : s.per_worker)
      lines.push_back(closing_row(
          std::to_string(w.worker), {w.compute_s, w.exchange_s, w.wait_s, w.load_s}, rate(w.samples, busy_s(w)),
          w.staleness_count > 0 ? staleness_text(mean_staleness(w), w.staleness_max) : "-", wide));
    const bool measured = std::ranges::any_of(s.per_worker, [](const auto& w) { return w.staleness_count > 0; });
    if (s.per_worker.size() > 1)
      lines.push_back(closing_row("all", average_time(s.per_worker), s.images_per_s,
                                  measured ? staleness_text(s.staleness_mean, s.staleness_max) : "-", wide));
    for (auto& row : lines) row = row.fitted(columns);
    if (auto parts = compute_line(s.per_worker)) lines.push_back(std::move(*parts));
    if (auto worst = worst_wait_line(s.per_worker)) lines.push_back(std::move(*worst));
    if (std::ranges::any_of(s.per_worker,
                            [](const auto& w) { return !w.staleness.empty() && w.staleness_count > 0; })) {
      lines.emplace_back("updates by staleness, in versions of the centre:", Style::dim);
      for (const auto& w : s.per_worker)
        if (w.staleness_count > 0) lines.push_back(staleness_line(w, columns));
    }
  }
  const bool loads =
      s.dataset != "numbers";  // a program reads its samples itself, and need not tell a loss or an accuracy
  const auto color = end.failed ? Style::plain : Style::green;
  if (!loads && std::isnan(s.test_accuracy) && !std::isnan(s.test_loss))
    lines.emplace_back(fmt::format("test loss {}", loss_text(s.test_loss)), color);
  if (std::isfinite(s.test_accuracy)) {  // it is NaN until the first evaluation
    StyledLine result(fmt::format("test accuracy {}", percent(s.test_accuracy)), color);
    if (s.test_top5 >= 0) result.add(fmt::format(" (top-5 {})", percent(s.test_top5)));
    if (loads || !std::isnan(s.test_loss)) result.field(fmt::format(", loss {}", loss_text(s.test_loss)));
    lines.push_back(std::move(result));
  }
  if (auto slow = loads ? slow_loading_line(s.per_worker) : std::nullopt) lines.push_back(std::move(*slow));
  std::uint64_t replaced = 0;
  for (const auto& w : s.per_worker) replaced += w.replaced;
  if (replaced > 0)
    lines.emplace_back(fmt::format("{} that could not be read: others stood in their place (data.max_bad)",
                                   counted(replaced, "sample")),
                       Style::yellow);
  if (!s.stopped_by.empty() && !end.failed)
    lines.emplace_back(fmt::format("stopped early, by run.{}", s.stopped_by), Style::yellow);
  StyledLine work(fmt::format("{} in {}", counted(s.samples, "sample"), clock_time(s.wall_s)));
  if (s.images_per_s > 0) work.field(fmt::format(", {} images/s", rate_text(s.images_per_s)));
  lines.push_back(std::move(work));
  if (!directory.empty()) lines.emplace_back(directory);
  return lines;
}

}  // namespace troupe::report
