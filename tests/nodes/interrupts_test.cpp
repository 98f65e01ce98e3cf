// Ctrl-C while a run begins: it takes effect at once, whatever the run waits for, and no process keeps anything of the run.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/data/idx_files.hpp"
#include "tests/nodes/nodes_fixture.hpp"
#include "tests/wait.hpp"

namespace troupe::nodes {
namespace {

class Interrupts : public NodesFixture {
 protected:
  /// The run ends with exit code 130 and one line that says it was interrupted. There is no run directory.
  void expect_interrupted(Process& run) {
    EXPECT_EQ(run.wait(), 130) << run.err();
    EXPECT_EQ(run.err(), "troupe: interrupted before it began\n");
    EXPECT_EQ(run.out(), "");
    EXPECT_TRUE(no_run());
  }
};

/// Accepts connections and never sends a byte.
class SilentListener {
 public:
  SilentListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, any, size), 0);
    EXPECT_EQ(::listen(socket_, 4), 0);
    EXPECT_EQ(::getsockname(socket_, any, &size), 0);
    name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentListener() {
    ::close(caller_);
    ::close(socket_);
  }
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;

  void await_caller() { caller_ = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  int socket_;
  int caller_ = -1;
  std::string name_;
};

TEST_F(Interrupts, InterruptWhileConnectingEndsAtOnce) {
  start_nodes(1);
  SilentListener silent;
  Process run(program({"train", config_, "--nodes", node(0).name() + "," + silent.name(), "--set",
                       "run.dir=" + folder_.file("runs"), "--plain"}));
  silent.await_caller();
  run.signal(SIGINT);
  expect_interrupted(run);
  expect_free();
}

/// A data set whose first file is a pipe: a process that opens it blocks until the pipe has a writer.
class EndlessData {
 public:
  explicit EndlessData(const std::filesystem::path& directory) : pipe_(directory / "data" / "train-images-idx3-ubyte") {
    data::write_data_set(pipe_.parent_path());
    std::filesystem::remove(pipe_);
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
  }
  ~EndlessData() { end(); }
  EndlessData(const EndlessData&) = delete;
  EndlessData& operator=(const EndlessData&) = delete;

  /// Blocks until a process opens the pipe. False: none does.
  [[nodiscard]] bool await_reader() {
    return tests::eventually([this] {
      writer_ = ::open(pipe_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return writer_ >= 0;
    });
  }
  void end() {
    if (writer_ >= 0) ::close(std::exchange(writer_, -1));
  }

 private:
  std::filesystem::path pipe_;
  int writer_ = -1;
};

TEST_F(Interrupts, InterruptWhileANodeOpensItsDataEndsAtOnce) {
  const data::TemporaryDirectory here, there;
  std::filesystem::create_directory(here.path() / "data");
  std::filesystem::create_directory(there.path() / "data");
  data::write_data_set(here.path() / "data");
  EndlessData endless(there.path());
  start_node({.tls = {}, .directory = there.path(), .within = {}});
  Process run(train(with({"data.name=idx", "data.path=data", "data.batch=1", "cluster.workers=1"})), here.path());
  ASSERT_TRUE(endless.await_reader()) << run.err();
  run.signal(SIGTERM);
  expect_interrupted(run);
  // The blocked read goes on until it fails; then the site ends, with no coordinator to report to.
  endless.end();
  EXPECT_TRUE(node(0).process().says("worker 0 of ")) << node(0).log();
  expect_free();
}

// A thread in a blocking read does not react: the process exits without it, soon after the first signal, at once after the second.
TEST_F(Interrupts, InterruptWhileOpeningItsOwnDataEndsAtOnce) {
  for (const int times : {1, 2}) {
    const data::TemporaryDirectory here;
    std::filesystem::create_directory(here.path() / "data");
    EndlessData endless(here.path());
    start_node();
    Process run(train(with({"data.name=idx", "data.path=data", "data.batch=1"})), here.path());
    ASSERT_TRUE(endless.await_reader()) << run.err();
    if (times == 2) run.signal(SIGSTOP);  // until both are there, however late this test sends the second one
    run.signal(SIGINT);
    if (times == 2) run.signal(SIGTERM);  // of another kind: a second SIGINT would merge with a pending first one
    if (times == 2) run.signal(SIGCONT);
    EXPECT_EQ(run.wait(), 130) << run.err();
    EXPECT_EQ(run.err(), times == 1 ? "troupe: interrupted before it began\n"
                                    : "troupe: interrupted again: exits at once, nothing more was saved\n");
    EXPECT_TRUE(no_run());
  }
  expect_free();
}

// At moments while the process draws its data, connects, opens sites, compiles, measures.
class InterruptAtAnyMoment : public Interrupts, public testing::WithParamInterface<int> {
 protected:
  /// Blocks until the process has blocked SIGINT in order to wait for it; before that SIGINT would kill it. False: it never does.
  static bool hears_signals(pid_t process) {
    const auto until = std::chrono::steady_clock::now() + kSoon;
    while (std::chrono::steady_clock::now() < until) {
      std::ifstream status("/proc/" + std::to_string(process) + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigBlk:") && (std::stoull(line.substr(7), nullptr, 16) & (1U << (SIGINT - 1))) != 0)
          return true;
      std::this_thread::yield();
    }
    return false;
  }
};

TEST_P(InterruptAtAnyMoment, EndsARunWithAStoppedNode) {
  start_nodes(3);
  Process run(train(
      with({"strategy.name=bsp", "exchange.endpoint=tcp", "model.widths=[2000, 2000]", "data.train_samples=6000"})));
  ASSERT_TRUE(hears_signals(run.pid()));
  tests::let_pass(std::chrono::milliseconds(GetParam()));
  node(2).process().signal(SIGSTOP);
  run.signal(SIGINT);
  const int code = run.wait();
  node(2).process().signal(SIGCONT);
  // Otherwise the run had just begun: it was interrupted after a step (130), or it lost the stopped node before (75).
  if (no_run()) {
    EXPECT_EQ(code, 130) << run.err();
    EXPECT_EQ(run.err(), "troupe: interrupted before it began\n");
  } else {
    EXPECT_TRUE(code == 130 || code == 75) << code << ": " << run.err();
  }
  expect_free();
}

INSTANTIATE_TEST_SUITE_P(, InterruptAtAnyMoment, testing::Values(0, 50, 100, 200, 300, 400));

}  // namespace
}  // namespace troupe::nodes
