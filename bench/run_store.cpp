// What a run store answers, and how fast. The store is filled through the library, as a look at whole directories would fill it: writing and reading
// these would take longer than all of the rest. The directories are there, with a config.toml and the begin and end of a metrics.jsonl, so that each
// look costs what it costs. Every run has its own configuration (the worst case) of 80 keys, 40 results and `points` points.
#include "store/run_store.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/query/details.hpp"
#include "store/query/list.hpp"
#include "store/schema.hpp"
#include "store/writer.hpp"

namespace {

using namespace troupe;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <class T>
T need(core::Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

constexpr std::int64_t kOptions = 80, kResults = 40;

store::RunRow run_number(std::int64_t k) {
  static constexpr const char* kStrategies[] = {"bsp", "easgd", "ssp", "downpour", "gossip"};
  store::RunRow run;
  run.name = fmt::format("r{}", k);
  run.started = fmt::format("2026-{:02}-{:02} {:02}:{:02}:{:02}", k / 28 % 12 + 1, k % 28 + 1, k / 336 % 24,
                            k / 8064 % 60, k % 60);
  run.status = "done";
  run.config = {{"run.name", run.name},
                {"run.seed", k},
                {"strategy.name", std::string(kStrategies[k % 5])},
                {"train.lr", 1e-4 + 1e-6 * static_cast<double>(k)},
                {"strategy.tau", k % 64}};
  for (std::int64_t i = static_cast<std::int64_t>(run.config.size()); i < kOptions; ++i)
    run.config.emplace_back(fmt::format("section{}.key{}", i % 8, i), (k * 7 + i) % (i % 10 + 1));
  run.results = {{"strategy", std::string(kStrategies[k % 5])},
                 {"test.accuracy", static_cast<double>(k * 7919 % 100'000) / 100'000},
                 {"test.loss", 0.5},
                 {"wall_s", 41.5}};
  for (std::int64_t i = static_cast<std::int64_t>(run.results.size()); i < kResults; ++i)
    run.results.emplace_back(fmt::format("time.result{}", i), static_cast<double>((k + i) % 1000) / 7);
  run.summary = R"({"strategy":"easgd"})";
  return run;
}

void fill(store::Database& database, std::int64_t runs, std::int64_t points) {
  store::Writer writer(database);
  constexpr std::int64_t kBatch = 1000;
  for (std::int64_t k = 0; k < runs;) {
    store::Transaction batch(database);
    writer.begin();
    for (const auto end = std::min(k + kBatch, runs); k < end; ++k) {
      auto run = run_number(k);
      run.id = writer.put(store::DirectoryRow{fmt::format("20260102-{:06}-r", k), "run", 1, {}});
      writer.put(run);
      if (k % 100 == 0) writer.put_notes(run.id, {{"paper"}, ""});
      store::NewPoints curve{std::numeric_limits<double>::infinity(), {}};
      for (std::int64_t i = 0; i < points; ++i)
        curve.points.push_back({i % 2 == 0 ? "test.loss" : "test.accuracy", static_cast<double>(i / 2), i * 2.5,
                                0.001 * static_cast<double>(i)});
      writer.put(run.id, curve);
    }
    need(batch.commit());
  }
}

/// The directories of the runs in the store, which takes them for read.
void make_directories(store::Database& database, const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::int64_t, std::string>> runs;
  for (store::Statement all(database, "SELECT id, path FROM directories"); all.next();)
    runs.emplace_back(all.integer(0), all.text(1));
  const auto modified = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  store::Transaction together(database);
  store::Statement look(database, "UPDATE directories SET modified = ? WHERE id = ?");
  for (const auto& [id, path] : runs) {
    const auto run = folder + "/" + path;
    fs::create_directory(run);
    std::ofstream(run + "/config.toml") << "[run]\nseed = " << id << "\n";
    std::ofstream(run + "/metrics.jsonl")
        << "{\"kind\":\"started\",\"t\":0}\n{\"kind\":\"ended\",\"t\":9,\"error\":null}\n";
    fs::last_write_time(run, modified);
    struct stat status {};
    if (::stat(run.c_str(), &status) != 0) std::exit(1);
    look.with(std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, id).run();
  }
  need(together.commit());
}

/// The median and the longest of the rounds, in ms.
void measure(const std::string& what, int rounds, const std::function<std::size_t()>& ask) {
  std::vector<double> times;
  std::size_t answers = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    answers = ask();
    times.push_back(1000 * seconds_since(begin));
  }
  const double first = times.front();
  std::ranges::sort(times);
  fmt::print("{:72} {:7} {:8.1f} {:8.1f} {:8.1f}\n", what, answers, first, times[times.size() / 2], times.back());
  std::fflush(stdout);
}

std::size_t listed(store::Database& database, const std::string& filter, const std::string& sort) {
  const auto conditions = need(store::parse_filter(filter));
  return static_cast<std::size_t>(
      need(
          store::list(database, {conditions, {"run", "status", "strategy", "lr", "accuracy", "tags"}, sort, false, 50}))
          .total);
}

void measure_queries(store::Database& database, std::int64_t runs, int rounds) {
  fmt::print("{:72} {:>7} {:>8} {:>8} {:>8}\n", "question (50 shown, all counted)", "runs", "first ms", "median",
             "longest");
  const std::vector<std::pair<std::string, std::string>> questions{{"", "started"},
                                                                   {"strategy=easgd accuracy>0.99", "started"},
                                                                   {"strategy=easgd accuracy>0.5", "accuracy"},
                                                                   {"lr<0.01 tau=4", "accuracy"},
                                                                   {"lr<0.05", "started"},
                                                                   {"time.result9>100 strategy!=bsp", "accuracy"},
                                                                   {"tag=paper", "started"},
                                                                   {"name~999", "loss"}};
  for (const auto& [filter, sort] : questions)
    measure(fmt::format("list {} --sort {}", filter, sort), rounds, [&] { return listed(database, filter, sort); });
  for (const std::int64_t count : {2, 10, 200})
    measure(fmt::format("compare {} runs", count), rounds, [&] {
      std::vector<store::RunDetails> compared;
      for (std::int64_t k = 0; k < count; ++k)
        compared.push_back(need(store::details_of(database, 1 + k * (runs / count))));
      return store::differing_keys(compared).empty() ? std::size_t{0} : compared.size();
    });
  measure("curves of a run", rounds, [&] { return need(store::curves_of(database, 1 + runs / 2)).size(); });
}

/// What a look at all of the directories costs a process that opens the store.
void measure_open(const std::string& folder, int rounds) {
  measure("open the store and look at all directories, nothing changed", rounds, [&] {
    const auto store = need(store::RunStore::open(folder));
    if (store.refreshed().read + store.refreshed().removed != 0) {
      fmt::print(stderr, "the look read {} runs and removed {}\n", store.refreshed().read, store.refreshed().removed);
      std::exit(1);
    }
    return store.refreshed().looked_at;
  });
}

/// Directories of small runs, read by a first look and looked at by a second one.
void measure_looks(const std::string& folder, int runs) {
  namespace fs = std::filesystem;
  for (int k = 0; k < runs; ++k) {
    const auto run = fmt::format("{}/20260102-{:06}-r", folder, k);
    fs::create_directories(run);
    std::ofstream config(run + "/config.toml");
    for (const auto& [key, value] : run_number(k).config)
      config << fmt::format("{} = {}\n", key,
                            value.index() == 3 ? fmt::format("\"{}\"", store::text_of(value)) : store::text_of(value));
    config.close();
    std::ofstream metrics(run + "/metrics.jsonl");
    for (int i = 1; i <= 20; ++i)
      metrics << fmt::format(R"({{"kind":"epoch","t":1,"epoch":{},"test":{{"loss":0.25,"accuracy":0.5}},"train_s":{}}})"
                             "\n",
                             i, i);
    metrics << "{\"kind\":\"ended\",\"t\":9,\"error\":null}\n";
    metrics.close();
    fs::last_write_time(run, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  }
  for (const char* what : {"first look, which reads them", "second look, at which nothing has changed"}) {
    const auto begin = Clock::now();
    const auto store = need(store::RunStore::open(folder));
    fmt::print("{} directories: {}: {:.1f} ms ({} read)\n", runs, what, 1000 * seconds_since(begin),
               store.refreshed().read);
  }
}

}  // namespace

/// FOLDER [RUNS] [POINTS of a run] [ROUNDS] [DIRECTORIES]; a store that is in the folder is measured again, not filled.
int main(int argc, char** argv) {
  const auto number = [&](int index, int usual) { return argc > index ? std::atoi(argv[index]) : usual; };
  if (argc < 2) return 2;
  const std::string folder = argv[1];
  const int runs = number(2, 100'000), points = number(3, 100), rounds = number(4, 11), directories = number(5, 10'000);
  const auto full = folder + "/full", file = full + "/" + std::string(store::kStoreFile);
  std::filesystem::create_directories(full);
  if (!std::filesystem::exists(file)) {
    auto database = need(store::Database::open(file, true));
    need(store::make_schema(database, store::Make::anew));
    const auto begin = Clock::now();
    fill(database, runs, points);
    const auto filled = seconds_since(begin);
    make_directories(database, full);
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    need(database.check());
    fmt::print(
        "{} runs of {} options, {} results and {} points: {:.0f} s to store, {:.0f} MB; {:.0f} s for directories\n\n",
        runs, kOptions, kResults, points, filled, static_cast<double>(std::filesystem::file_size(file)) / 1e6,
        seconds_since(begin) - filled);
    std::fflush(stdout);
  }
  auto database = need(store::Database::open(file, true));
  measure_queries(database, runs, rounds);
  measure_open(full, rounds);
  fmt::print("\n");
  std::filesystem::create_directory(folder + "/runs");
  measure_looks(folder + "/runs", directories);
}
