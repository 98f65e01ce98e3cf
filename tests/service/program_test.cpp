/// The real program: `troupe serve` as a user starts it.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/folder.hpp"
#include "tests/service/client.hpp"

namespace troupe::service {
namespace {

struct Ended {
  int code = -1;
  std::string text;  // standard output and error
};

Ended run(const std::string& arguments) {
  Ended ended;
  FILE* pipe = ::popen(fmt::format("{} serve {} 2>&1", TROUPE_BINARY, arguments).c_str(), "r");
  std::array<char, 4096> piece{};
  while (const auto count = std::fread(piece.data(), 1, piece.size(), pipe)) ended.text.append(piece.data(), count);
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// A service that runs.
class Running {
 public:
  explicit Running(const std::string& directory) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::execl(TROUPE_BINARY, TROUPE_BINARY, "serve", "--listen", "127.0.0.1:0", "--dir", directory.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_.reset(ends[0]);
  }
  ~Running() {
    if (child_ > 0) static_cast<void>(end(SIGKILL));
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] std::string line() const {
    std::string text;
    for (char c = 0; ::read(output_.get(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  [[nodiscard]] int end(int signal) {
    int status = 0;
    ::kill(child_, signal);
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = -1;
  core::FileDescriptor output_;
};

std::uint16_t port_in(const std::string& line) {
  const auto begin = line.find("http://127.0.0.1:");
  return begin == std::string::npos ? 0 : static_cast<std::uint16_t>(std::atoi(line.c_str() + begin + 17));
}

TEST(ServeProgramTest, FirstStartSaysATokenOnceAndCtrlCEndsIt) {
  const tests::Folder folder;
  const auto runs = folder.file("a folder/runs τ");
  std::string token;
  {
    Running service(runs);
    const auto port = port_in(service.line());
    ASSERT_NE(port, 0);
    const auto login = service.line();
    ASSERT_NE(login.find("#token="), std::string::npos) << login;
    token = login.substr(login.find("#token=") + 7);
    Client client(port);
    client.send(request_text("GET", "/api/v1/server", "Authorization: Bearer " + token + "\r\n"));
    EXPECT_EQ(client.receive().json()["role"], "admin");
    EXPECT_EQ(service.end(SIGINT), 0);
  }
  Running again(runs);
  const auto port = port_in(again.line());
  Client client(port);
  client.send(request_text("GET", "/api/v1/runs", "Authorization: Bearer " + token + "\r\n"));
  EXPECT_EQ(client.receive().status, 200);
  const auto taken = run(fmt::format("--listen 127.0.0.1:{} --dir '{}'", port, folder.file("other runs")));
  EXPECT_EQ(taken.code, 78);
  EXPECT_THAT(taken.text, testing::HasSubstr("another program listens there"));
  EXPECT_EQ(again.end(SIGTERM), 0);
  EXPECT_EQ(again.line(), "");  // no second token
}

TEST(ServeProgramTest, OffLoopbackItNeedsTls) {
  const tests::Folder folder;
  for (const auto* at : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
    // XDG_CONFIG_HOME: no certificates of the user who runs the tests.
    ::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1);
    const auto refused = run(fmt::format("--listen '{}' --dir {}", at, folder.file("runs")));
    EXPECT_EQ(refused.code, 78) << at;
    EXPECT_THAT(refused.text, testing::HasSubstr("TLS")) << at;
  }
}

TEST(ServeProgramTest, UsersAreAddedAndRemoved) {
  const tests::Folder folder;
  const auto added = run(fmt::format("--dir {} --add-user ann --role run", folder.path()));
  EXPECT_EQ(added.code, 0) << added.text;
  EXPECT_EQ(run(fmt::format("--dir {} --add-user ann", folder.path())).code, 2);
  EXPECT_EQ(run(fmt::format("--dir {} --add-user bob --role king", folder.path())).code, 2);
  EXPECT_EQ(run(fmt::format("--dir {} --remove-user ann", folder.path())).code, 0);
  EXPECT_EQ(run(fmt::format("--dir {} --remove-user ann", folder.path())).code, 2);
}

}  // namespace
}  // namespace troupe::service
