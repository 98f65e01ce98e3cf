// How long the service takes for a page of a journal's events: with and without remembered places (service/journal/journal_places.hpp).
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/journal.hpp"
#include "service/journal/event_list.hpp"
#include "service/journal/journal_places.hpp"
#include "strategies/host/journal_codec.hpp"

namespace {

using namespace troupe;

constexpr const char* kRun = "20260102-030405-long";

void write_run(const std::string& folder, std::uint64_t events, std::uint32_t workers) {
  const auto run = folder + "/" + kRun;
  std::filesystem::create_directories(run);
  std::ofstream(run + "/config.toml") << "[run]\n";
  std::ofstream(run + "/metrics.jsonl") << "{\"kind\":\"started\",\"t\":0}\n";
  auto writer = core::JournalWriter::create(run + "/journal-0001.bin").value();
  for (std::uint64_t k = 0; k < events; ++k) {
    strategies::StepDone done;
    done.step = k / workers + 1;
    const auto record = strategies::encode(static_cast<std::uint32_t>(k % workers), strategies::WorkerEvent(done));
    if (!writer.append(record.kind, record.payload)) std::exit(1);
  }
  if (!writer.flush()) std::exit(1);
}

void measure(const char* what, const std::string& folder, const service::JournalQuestion& question,
             service::JournalPlaces* places) {
  const auto begin = std::chrono::steady_clock::now();
  const auto page = service::list_events(folder, question, {}, places);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  if (!page) {
    fmt::print(stderr, "{}\n", page.error().message);
    std::exit(1);
  }
  fmt::print("{:56} {:6} events {:10.2f} ms\n", what, (*page)["events"].size(), taken.count());
}

}  // namespace

/// [EVENTS] [WORKERS]; the folder is made in TMPDIR and removed.
int main(int argc, char** argv) {
  const auto events = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const auto workers = argc > 2 ? std::atoi(argv[2]) : 16;
  auto folder = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  write_run(folder, static_cast<std::uint64_t>(events), static_cast<std::uint32_t>(workers));
  fmt::print("{} events of {} workers, {:.0f} MB\n", events, workers,
             static_cast<double>(std::filesystem::file_size(folder + "/" + kRun + "/journal-0001.bin")) / 1e6);
  const service::JournalQuestion first{.run = kRun}, last{.run = kRun, .from = events - 100};
  const service::JournalQuestion step{.run = kRun, .step = events / workers - 3};
  service::JournalPlaces places;
  measure("the first page", folder, first, nullptr);
  for (int k = 0; k < 3; ++k) measure("the last page, without places", folder, last, nullptr);
  measure("the last page, the first time", folder, last, &places);
  for (int k = 0; k < 3; ++k) measure("the last page, with places", folder, last, &places);
  for (int k = 0; k < 3; ++k) measure("from one of the last steps on, without places", folder, step, nullptr);
  for (int k = 0; k < 3; ++k) measure("from one of the last steps on, with places", folder, step, &places);
  std::filesystem::remove_all(folder);
}
