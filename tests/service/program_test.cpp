/// The real program: `troupe serve` as a user starts it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/folder.hpp"
#include "tests/service/client.hpp"
#include "tests/service/datasets/archives.hpp"
#include "tests/wait.hpp"

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
  const auto second = run(fmt::format("--listen 127.0.0.1:0 --dir '{}'", runs));
  EXPECT_EQ(second.code, 75);
  EXPECT_THAT(second.text, testing::HasSubstr("is at work in this directory"));
  const auto taken = run(fmt::format("--listen 127.0.0.1:{} --dir '{}'", port, folder.file("other runs")));
  EXPECT_EQ(taken.code, 78);
  EXPECT_THAT(taken.text, testing::HasSubstr("another program listens there"));
  EXPECT_EQ(again.end(SIGTERM), 0);
  EXPECT_EQ(again.line(), "");  // no second token
}

/// Of sets that were being uploaded when the service was killed, each is whole or not there at all, and no file of it is left.
/// The data set's file is a pipe, which the reader waits for.
TEST(ServeProgramTest, CtrlCEndsItAlsoWhileADataSetIsOpened) {
  const tests::Folder folder;
  for (const auto& file : idx_set("set")) folder.write(file.name, file.text);
  const auto images = folder.file("set/train-images-idx3-ubyte");
  ASSERT_EQ(::unlink(images.c_str()), 0);
  ASSERT_EQ(::mkfifo(images.c_str(), 0600), 0);
  Running service(folder.file("runs"));
  const auto port = port_in(service.line());
  ASSERT_NE(port, 0);
  const auto login = service.line();
  const auto authorization = "Authorization: Bearer " + login.substr(login.find("#token=") + 7) + "\r\n";
  Client client(port);
  client.send(request_text("POST", "/api/v1/datasets", authorization,
                           nlohmann::json{{"name", "a"}, {"kind", "idx"}, {"path", folder.file("set")}}.dump()));
  ASSERT_EQ(client.receive().status, 201);
  client.send(request_text("GET", "/api/v1/datasets/a", authorization));
  core::FileDescriptor writer;
  ASSERT_TRUE(tests::eventually([&] {
    writer.reset(::open(images.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return static_cast<bool>(writer);  // it has a reader
  }));
  EXPECT_EQ(service.end(SIGINT), 0);
}

TEST(ServeProgramTest, UploadsThatAKillEndsAreWholeOrNotThere) {
  const tests::Folder folder;
  const auto runs = folder.file("runs");
  const auto token = run(fmt::format("--dir '{}' --add-user ann --role admin", runs)).text;
  const auto authorization = fmt::format("Authorization: Bearer {}", token.substr(token.rfind(": ") + 2));
  ASSERT_EQ(authorization.back(), '\n');
  const auto header = authorization.substr(0, authorization.size() - 1) + "\r\n";
  auto files = idx_set();
  for (int i = 0; i < 500; ++i) files.push_back({fmt::format("more/{}", i), std::string(20'000, 'x')});
  const auto body = packed("zip.stored", files);
  const auto names_of = [](Client& client, const std::string& headers) {
    client.send(request_text("GET", "/api/v1/datasets", headers));
    std::vector<std::string> names;
    for (const auto& one : client.receive().json()) names.push_back(one["name"]);
    return names;
  };
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    Running service(runs);
    Client client(port_in(service.line()));
    client.send(request_text("PUT", fmt::format("/api/v1/datasets/set-{}/upload?kind=idx", round), header, body)
                    .substr(0, round == 0 ? body.size() / 2 : std::string::npos));
    tests::let_pass(std::chrono::milliseconds(5 * round));
    static_cast<void>(service.end(SIGKILL));
  }
  Running service(runs);
  Client client(port_in(service.line()));
  const auto names = names_of(client, header);
  EXPECT_THAT(names, testing::Not(testing::Contains("set-0")));
  for (const auto& name : names) {
    client.send(request_text("GET", "/api/v1/datasets/" + name, header));
    EXPECT_EQ(client.receive().json()["samples"]["train"], 5) << name;
  }
  const auto uploads = runs + "/.service/datasets";
  EXPECT_TRUE(tests::eventually([&] {
    std::error_code ignored;
    std::filesystem::directory_iterator found(uploads, ignored);
    return std::distance(found, {}) == static_cast<std::ptrdiff_t>(names.size());
  }));
  for (const auto& one : std::filesystem::directory_iterator(uploads))
    EXPECT_TRUE(std::filesystem::exists(one.path() / "more/499")) << one.path();
  client.send(request_text("PUT", "/api/v1/datasets/set-0/upload?kind=idx", header, body));
  EXPECT_EQ(client.receive().status, 201);
  EXPECT_EQ(service.end(SIGINT), 0);
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

TEST(ServeProgramTest, LimitsOfUploadsThatAreNoSizesAreRefused) {
  const tests::Folder folder;
  for (const auto* limit : {"-1", "many", "4XB", "9999999TB"}) {
    const auto refused = run(fmt::format("--dir {} --listen 127.0.0.1:0 --upload-limit={}", folder.path(), limit));
    EXPECT_EQ(refused.code, 2) << limit << refused.text;
    EXPECT_THAT(refused.text, testing::HasSubstr("--upload-limit"));
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
