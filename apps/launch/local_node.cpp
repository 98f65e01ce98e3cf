#include "apps/launch/local_node.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include <fmt/format.h>

#include "actors/control/network.hpp"
#include "actors/deployment/node.hpp"
#include "actors/deployment/nodes.hpp"
#include "apps/backends.hpp"
#include "apps/launch/late_actors.hpp"

namespace troupe::apps {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::chrono::seconds kStartPatience{30};
constexpr std::chrono::seconds kEndPatience{10};

void write_line(int line, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(line, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the parent has ended
    done += static_cast<std::size_t>(count);
  }
}

/// The child's work: serves until the parent closes its end of `line`.
void serve(int line, const security::TlsFiles& tls) {
  actors::NetworkOptions options;
  options.tls = tls;
  actors::NetworkConfig config(options);
  caf::actor_system system(config);
  const actors::ActorsWait last(system, [] { end_without_late_actors(); });
  auto network = actors::Network::create(system, options);
  if (!network) return write_line(line, "!" + network.error().message + "\n");
  const auto node = system.spawn(
      actors::node, actors::NodeSetup{.version = actors::spoken_version(TROUPE_VERSION),
                                      .data_host = kLoopback,
                                      .tls = tls,
                                      .contexts = std::make_shared<actors::RunContextCache>(
                                          [](const experiment::Settings& settings) { return make_backend(settings); }),
                                      .log = [](const std::string&) {}});  // the run tells what matters
  if (const auto port = (*network)->publish(node, {kLoopback, 0})) {
    write_line(line, fmt::format("{}\n", *port));
    char none = 0;
    while (::read(line, &none, 1) < 0 && errno == EINTR) {
    }
  } else {
    write_line(line, "!" + port.error().message + "\n");
  }
  caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
}

core::Result<std::string> first_line(int line) {
  std::string text;
  for (;;) {
    pollfd watched{line, POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kStartPatience).count();
    const int ready = ::poll(&watched, 1, static_cast<int>(patience));
    if (ready == 0) return core::fail(core::Errc::timeout, "the node of this run did not start in time");
    char c = 0;
    const ssize_t count = ready < 0 ? -1 : ::read(line, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return core::fail(core::Errc::io, "the node of this run has ended");
    if (c == '\n') return text;
    text += c;
  }
}

}  // namespace

core::Result<std::unique_ptr<LocalNode>> LocalNode::start() {
  std::unique_ptr<LocalNode> node(new LocalNode);
  const auto identity = security::make_run_identity({kLoopback}, std::time(nullptr));
  if (!identity) return tl::unexpected(identity.error());
  auto files = security::MemoryFiles::create(*identity);
  if (!files) return tl::unexpected(files.error());
  node->certificates_ = std::make_unique<security::MemoryFiles>(std::move(*files));
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return tl::unexpected(core::from_errno(errno, "open", "a socket to the node of this run"));
  core::FileDescriptor here(pair[0]), there(pair[1]);
  const pid_t parent = ::getpid();
  node->process_ = ::fork();
  if (node->process_ < 0) return tl::unexpected(core::from_errno(errno, "fork", "the node of this run"));
  if (node->process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);  // Ctrl-C reaches the parent, which ends the run in order
    // The parent ends the run in order, also when a signal goes to all processes of a service or a job.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
    here.reset();
    serve(there.get(), node->certificates_->files());
    ::_exit(0);
  }
  there.reset();
  node->line_ = std::move(here);
  auto said = first_line(node->line_.get());
  if (!said) return tl::unexpected(std::move(said.error()));
  if (said->starts_with('!')) return core::fail(core::Errc::io, "the node of this run: " + said->substr(1));
  node->address_ = fmt::format("{}:{}", kLoopback, *said);
  return node;
}

LocalNode::~LocalNode() {
  if (process_ <= 0) return;
  line_.reset();
  const auto until = std::chrono::steady_clock::now() + kEndPatience;
  while (::waitpid(process_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      ::kill(process_, SIGKILL);
      while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
      }
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace troupe::apps
