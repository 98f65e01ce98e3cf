#include "tests/apps/launch/launched.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/wait.hpp"

namespace troupe::apps {

namespace fs = std::filesystem;

double target(int j, int sample) { return ((7 * sample + 3 * j) % 11) / 10.0; }

double gradient(int j, double p, const std::vector<int>& samples) {
  double mean = 0;
  for (const int sample : samples) mean += target(j, sample) / static_cast<double>(samples.size());
  return p - mean;
}

void Launched::TearDown() {
  EXPECT_TRUE(tests::eventually([this] { return remaining().empty(); }, std::chrono::seconds(60)));
  EXPECT_EQ(remaining(), Words{});
}

Words Launched::command(const Words& options, const Words& words) const {
  Words program{TROUPE_SCRIPTED_GUEST};
  program.insert(program.end(), words.begin(), words.end());
  return command_of(options, program);
}

Words Launched::command_of(const Words& options, const Words& program) const {
  Words all{TROUPE_BINARY, "launch", "--plain", "--json", "--set", "run.dir=" + folder_.file("runs")};
  all.insert(all.end(), options.begin(), options.end());
  all.emplace_back("--");
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

nlohmann::json Launched::launch(const Words& options, const Words& words) {
  const auto outcome = run_program(command(options, words));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

std::string Launched::run() const {
  Words runs;
  for (const auto& entry : fs::directory_iterator(folder_.file("runs"))) runs.push_back(entry.path().string());
  return runs.empty() ? std::string()
                      : *std::ranges::max_element(runs, {}, [](const auto& path) { return fs::last_write_time(path); });
}

void Launched::expect_replays() {
  const auto replay = troupe({"replay", run()});
  EXPECT_EQ(replay.code, 0) << replay.out << replay.err;
  EXPECT_NE(replay.out.find("verified from beginning to end"), std::string::npos) << replay.out << replay.err;
}

std::vector<double> Launched::parameters() const {
  Words files;
  for (const auto& entry : fs::directory_iterator(run() + "/checkpoints"))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  if (files.empty()) return {};
  const auto bytes =
      contents(*std::ranges::max_element(files, {}, [](const auto& path) { return fs::last_write_time(path); }));
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  const auto header = nlohmann::json::parse(bytes.substr(8, size));
  std::vector<double> values;
  for (const auto* name : {"w", "b"}) {
    const auto places = header.at(name).at("data_offsets");
    for (auto at = places[0].get<std::size_t>(); at < places[1].get<std::size_t>(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 8 + size + at, sizeof(value));
      values.push_back(value);
    }
  }
  return values;
}

std::vector<std::vector<int>> Launched::steps_of(const std::string& name) const {
  std::vector<std::vector<int>> steps;
  std::istringstream log(folder_.read("log." + name));
  for (std::string line; std::getline(log, line);) {
    if (!line.starts_with("STEP ")) continue;
    std::istringstream numbers(line.substr(line.find("samples") + 7));
    auto& step = steps.emplace_back();
    for (int sample = 0; numbers >> sample;) step.push_back(sample);
  }
  return steps;
}

std::vector<std::pair<int, int>> Launched::places_of(const std::string& name) const {
  std::vector<std::pair<int, int>> places;
  std::istringstream log(folder_.read("log." + name));
  for (std::string line; std::getline(log, line);) {
    std::istringstream words(line);
    std::string word;
    auto& [epoch, position] = places.emplace_back();
    if (!(words >> word >> word >> epoch >> word >> position) || !line.starts_with("STEP ")) places.pop_back();
  }
  return places;
}

Words Launched::remaining() const {
  Words found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto text = contents(entry.path().string() + "/cmdline");
    if (text.find(folder_.path()) == std::string::npos) continue;
    auto line = text;
    std::ranges::replace(line, '\0', ' ');
    found.push_back(entry.path().filename().string() + ": " + line);
  }
  return found;
}

}  // namespace troupe::apps
