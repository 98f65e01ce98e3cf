#include "experiment/ledger/ledger.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "experiment/position/run_position.hpp"

namespace troupe::experiment {

double goodput(const LedgerReport& ledger) noexcept {
  if (!(ledger.possible > 0)) return kUnknown;
  return static_cast<double>(ledger.useful) / ledger.possible;
}

double possible_samples(const std::vector<WorkerProgress>& workers, const std::vector<double>& seconds) {
  double sum = 0, rates = 0, unknown_s = 0;
  std::size_t known = 0;
  for (std::size_t w = 0; w < std::min(workers.size(), seconds.size()); ++w) {
    if (workers[w].samples == 0 || !(workers[w].compute_s > 0)) {
      unknown_s += seconds[w];
      continue;
    }
    const double rate = static_cast<double>(workers[w].samples) / workers[w].compute_s;
    sum += rate * seconds[w];
    rates += rate;
    ++known;
  }
  return known > 0 ? sum + rates / static_cast<double>(known) * unknown_s : 0;
}

LedgerKeeper::LedgerKeeper(std::uint32_t workers, const LedgerStart& start, const data::LeaseAccounts& restored)
    : presence_(workers) {
  if (start.before) {
    before_ = *start.before;
    const auto useful = static_cast<std::uint64_t>(std::max<std::int64_t>(restored.run_done, 0));
    before_.rolled_back += before_.useful - std::min(before_.useful, useful);
    return;
  }
  before_.computed = start.computed;
  before_.wall_s = start.wall_s;
  before_.possible = possible_samples(start.workers, std::vector<double>(start.workers.size(), start.wall_s));
}

void LedgerKeeper::joined(std::uint32_t worker, double now_s) {
  if (auto& presence = presence_.at(worker); !presence.since) presence.since = now_s;
}

void LedgerKeeper::left(std::uint32_t worker, double now_s) {
  auto& presence = presence_.at(worker);
  if (presence.since) presence.until_now_s += now_s - *presence.since;
  presence.since.reset();
}

void LedgerKeeper::lost(std::uint64_t samples, bool again) {
  before_.lost += samples;
  if (again) before_.returned += samples;
}

LedgerReport LedgerKeeper::report(const data::LeaseAccounts& accounts, const std::vector<WorkerProgress>& workers,
                                  double now_s) const {
  const auto count = [](std::int64_t samples) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(samples, 0));
  };
  auto report = before_;
  report.epoch = accounts.epoch;
  report.size = count(accounts.size);
  report.done = count(accounts.done);
  report.given_up = count(accounts.given_up);
  report.leased = count(accounts.leased);
  report.free = count(accounts.free);
  report.omitted = count(accounts.omitted);
  report.useful = count(accounts.run_done);
  report.passed = count(accounts.run_given_up);
  std::vector<double> seconds;
  for (const auto& presence : presence_)
    seconds.push_back(presence.until_now_s + (presence.since ? now_s - *presence.since : 0));
  for (const auto& worker : workers) report.computed += worker.samples;
  report.possible += possible_samples(workers, seconds);
  report.wall_s += now_s;
  return report;
}

namespace {

/// Of a ledger line, with the end of the line before it: the first line of a file is of another kind.
constexpr std::string_view kBegin = "\n{\"kind\":\"ledger\",";

/// The last line that begins so and has its end; empty: none.
std::string last_line(std::ifstream& file) {
  constexpr std::streamoff kBlock = 1 << 16;
  file.seekg(0, std::ios::end);
  std::string block, line;
  for (std::streamoff end = file.tellg(), first = 0; end > 0; end = first) {
    first = std::max<std::streamoff>(end - kBlock, 0);
    block.resize(static_cast<std::size_t>(end - first) + kBegin.size() - 1);  // a line may begin across two blocks
    file.clear();
    file.seekg(first);
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    if (file.gcount() <= 0) break;
    block.resize(static_cast<std::size_t>(file.gcount()));
    for (auto at = block.rfind(kBegin); at != std::string::npos; at = block.rfind(kBegin, at - 1)) {
      file.clear();
      file.seekg(first + static_cast<std::streamoff>(at) + 1);
      if (std::getline(file, line) && !file.eof()) return line;
      if (at == 0) break;
    }
  }
  return {};
}

/// The last ledger line; not an object if there is none.
nlohmann::json last_json(const std::string& metrics_file) {
  std::ifstream file(metrics_file, std::ios::binary);
  return nlohmann::json::parse(last_line(file), nullptr, /*allow_exceptions=*/false);
}

/// False: the line has no such number.
template <class Number>
bool read_number(const nlohmann::json& line, const char* key, Number& to) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return false;
  const auto value = found->get<double>();
  if (!(value >= 0 && value <= 1e15)) return false;
  to = static_cast<Number>(value);
  return true;
}

}  // namespace

std::optional<LedgerReport> last_ledger(const std::string& metrics_file) {
  const auto line = last_json(metrics_file);
  if (!line.is_object()) return {};
  LedgerReport report;
  const auto read = [&](const char* key, auto& to) { return read_number(line, key, to); };
  const bool whole = read("useful", report.useful) && read("computed", report.computed) && read("lost", report.lost) &&
                     read("returned", report.returned) && read("passed", report.passed) &&
                     read("rolled_back", report.rolled_back) && read("possible", report.possible) &&
                     read("wall_s", report.wall_s);
  if (!whole) return {};
  return report;
}

std::optional<double> last_position(const std::string& metrics_file) {
  const auto line = last_json(metrics_file);
  if (!line.is_object()) return {};
  double epoch = 0, size = 0, omitted = 0, done = 0, given_up = 0;
  const auto read = [&](const char* key, double& to) { return read_number(line, key, to); };
  const bool whole = read("epoch", epoch) && read("size", size) && read("omitted", omitted) && read("done", done) &&
                     read("given_up", given_up);
  if (!whole) return {};
  return ledger_position(epoch, size, omitted, done + given_up);
}

}  // namespace troupe::experiment
