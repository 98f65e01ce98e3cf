#include "tests/actors/small_run.hpp"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "actors/run/assembly.hpp"
#include "core/journal.hpp"
#include "cpu/backend.hpp"
#include "experiment/directory/run_directory.hpp"
#include "tests/small_config.hpp"

namespace troupe::tests {

namespace {

const std::string kConfig = small_config("[run]\nepochs = 1", R"([train]
lr = 0.1
momentum = 0.9
[strategy]
name = "bsp"
[cluster]
workers = 2
)");

experiment::RunEnd failed(const core::Error& error) { return {.summary = {}, .failed = true, .error = error}; }

}  // namespace

nn::Backend& backend() {
  static const auto backend = cpu::make_backend();
  return *backend;
}

SmallRun::SmallRun(std::vector<std::string> options, nn::Backend& on) : backend_(&on), options_(std::move(options)) {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-run-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
  options_.push_back("run.dir=\"" + (directory_ / "runs").string() + "\"");
}

SmallRun::~SmallRun() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

core::Result<experiment::Settings> SmallRun::settings(const std::vector<std::string>& more) const {
  auto all = options_;
  all.insert(all.end(), more.begin(), more.end());
  auto config = core::Config::parse(experiment::schema(), kConfig, "test", all);
  if (!config) return tl::unexpected(config.error());
  return experiment::resolve(std::move(*config));
}

experiment::RunEnd SmallRun::train(std::stop_token stop) {
  auto settings = this->settings();
  if (!settings) return failed(settings.error());
  return actors::run_training({*settings, {}, false, {.mode = report::ConsoleOptions::Mode::quiet}}, *backend_, stop);
}

experiment::RunEnd SmallRun::train_on_hosts(const std::vector<std::uint32_t>& hosts) {
  return train_launched([&hosts](actors::Launch& launch) { launch.placement.hosts = hosts; });
}

experiment::RunEnd SmallRun::train_launched(const std::function<void(actors::Launch&)>& change) {
  return train(change, nn::system_files(), {.mode = report::ConsoleOptions::Mode::quiet});
}

experiment::RunEnd SmallRun::train_over(nn::FileSystem& disk, std::FILE* console) {
  return train([](actors::Launch&) {}, disk,
               {.mode = report::ConsoleOptions::Mode::plain, .color = false, .stream = console});
}

experiment::RunEnd SmallRun::train(const std::function<void(actors::Launch&)>& change, nn::FileSystem& disk,
                                   const report::ConsoleOptions& console) {
  const auto settings = this->settings();
  if (!settings) return failed(settings.error());
  const auto spec = experiment::build_run_spec(*settings, true);
  if (!spec) return failed(spec.error());
  auto directory = experiment::RunDirectory::create(settings->run.dir, settings->run.name, std::time(nullptr));
  if (!directory) return failed(directory.error());
  if (auto written = directory->write_config(settings->config); !written) return failed(written.error());
  const auto metered = std::make_shared<nn::MeteredFiles>(disk);
  auto store = nn::CheckpointStore::open(directory->checkpoints(), nn::CheckpointStore::kMinGenerations, *metered);
  if (!store) return failed(store.error());

  const core::SteadyClock clock;
  core::HostAllocator memory;
  actors::SystemConfig config;
  caf::actor_system system(config);
  auto launch = actors::launch_here(*spec);
  change(launch);
  actors::Assembly assembly({&system, &*spec, backend_, &memory, &clock}, std::move(launch));
  actors::Beginning beginning;
  beginning.directory = std::make_shared<const experiment::RunDirectory>(std::move(*directory));
  beginning.disk = metered;
  beginning.checkpoints = std::make_shared<nn::CheckpointStore>(std::move(*store));
  if (auto made = assembly.make_sites(beginning); !made) return failed(made.error());
  const auto coordinator = assembly.begin(beginning, console);
  if (!coordinator) return failed(coordinator.error());
  const auto end = actors::await_end(system, *coordinator);
  if (auto finished = assembly.finish(end); !finished) return failed(finished.error());
  return end;
}

experiment::RunEnd SmallRun::resume(const std::vector<std::string>& more, std::stop_token stop, bool replan) {
  auto directory = experiment::RunDirectory::open(run_directory().string());
  if (!directory) return failed(directory.error());
  auto config = directory->read_config(experiment::schema(), more);
  if (!config) return failed(config.error());
  auto settings = experiment::resolve(std::move(*config));
  if (!settings) return failed(settings.error());
  actors::RunRequest request{
      *settings, run_directory().string(), replan, {.mode = report::ConsoleOptions::Mode::quiet}};
  return actors::run_training(request, *backend_, stop);
}

std::filesystem::path SmallRun::run_directory() const {
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "runs")) return entry.path();
  throw std::runtime_error("there is no run");
}

std::map<std::string, std::vector<float>> SmallRun::tensors() const {
  auto newest = nn::load_newest((run_directory() / "checkpoints").string());
  if (!newest) throw std::runtime_error(newest.error().message);
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& tensor : newest->checkpoint.file.tensors()) {
    auto& values = tensors[tensor.name];
    values.resize(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  return tensors;
}

std::vector<core::JournalRecord> SmallRun::journal() const {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(run_directory())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("journal-") && name.ends_with(".bin") && entry.path() > newest) newest = entry.path();
  }
  auto contents = core::read_journal(newest.string());
  if (!contents) throw std::runtime_error(contents.error().message);
  return contents->records;
}

}  // namespace troupe::tests
