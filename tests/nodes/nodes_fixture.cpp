#include "tests/nodes/nodes_fixture.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>

namespace troupe::nodes {

namespace {

std::set<std::string> files_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path().string());
  return names;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

NodesFixture::NodesFixture() : config_(folder_.write("config.toml", kConfig)), shared_memory_(files_in("/dev/shm")) {}

void NodesFixture::TearDown() {
  for (auto& node : nodes_) {
    if (!node.process().runs()) continue;
    node.process().signal(SIGCONT);
    node.process().signal(SIGTERM);
    EXPECT_EQ(node.process().wait(), 0) << node.log();
  }
  nodes_.clear();
  // A child that has not been waited for by now was left behind by the program, not by the test.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  // Other programs on this host create files, too: only files with our name count.
  for (const auto& file : files_in("/dev/shm"))
    EXPECT_TRUE(shared_memory_.contains(file) || file.find("troupe") == std::string::npos) << file;
}

NodeProcess& NodesFixture::start_node(const NodeProcess::Options& options) {
  auto& node = nodes_.emplace_back(options);
  EXPECT_TRUE(node.up()) << node.log();
  return node;
}

void NodesFixture::start_nodes(std::size_t count, const security::TlsFiles& tls) {
  tls_ = tls;
  for (std::size_t k = 0; k < count; ++k) start_node({.tls = tls, .directory = {}, .within = {}});
}

std::string NodesFixture::names() {
  std::string list;
  for (auto& node : nodes_) {
    if (!node.process().runs()) continue;
    if (!list.empty()) list += ',';
    list += node.name();
  }
  return list;
}

std::vector<std::string> NodesFixture::train(const std::vector<std::string>& more) {
  const auto command =
      program({"train", config_, "--nodes", names(), "--set", "run.dir=" + folder_.file("runs"), "--plain", "--json"});
  return joined(joined(command, tls_arguments(tls_)), more);
}

std::vector<std::string> NodesFixture::resume(const std::vector<std::string>& more) {
  const auto command = program({"train", "--resume", run(), "--nodes", names(), "--plain", "--json"});
  return joined(joined(command, tls_arguments(tls_)), more);
}

std::uint64_t NodesFixture::two_epochs_after(Process& ended) {
  return summary(ended)["epochs"].get<std::uint64_t>() + 2;
}

std::vector<std::string> NodesFixture::resume_to(std::uint64_t epochs) {
  return resume(with({"run.epochs=" + std::to_string(epochs), "cluster.synthetic_step_ms=0"}));
}

std::vector<std::string> NodesFixture::with(const std::vector<std::string>& settings,
                                            const std::vector<std::string>& more) {
  auto all = more;
  for (const auto& setting : settings) {
    all.emplace_back("--set");
    all.push_back(setting);
  }
  return all;
}

nlohmann::json NodesFixture::summary(Process& process) { return nlohmann::json::parse(process.out(), nullptr, false); }

std::string NodesFixture::run() const {
  std::string newest;
  for (const auto& name : files_in(folder_.file("runs"))) newest = name;
  return newest;
}

bool NodesFixture::no_run() const { return !std::filesystem::exists(folder_.file("runs")); }

void NodesFixture::expect_replays(const std::string& run) {
  Process replay(program({"replay", run}));
  EXPECT_EQ(replay.wait(), 0) << replay.err();
}

void NodesFixture::expect_free() {
  // A site ends within the deadline for a silent coordinator. Then its resources are free for the next run.
  Process again(train(with({"run.epochs=1", "run.dir=" + folder_.file("again")})));
  EXPECT_EQ(again.wait(), 0) << again.err();
  EXPECT_EQ(summary(again)["samples"], 1200) << again.err();
}

}  // namespace troupe::nodes
