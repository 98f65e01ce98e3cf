#include "network_peers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "transport/net/tls_connection.hpp"

namespace troupe::actors::testing {
namespace {

Greeter::behavior_type greet(Greeter::pointer self, const std::string& name) {
  return {[name](const Prepare&) { return SiteAddress{name, "", {}}; }, [self](const Halt&) { self->quit(); }};
}

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t bind_any(const core::FileDescriptor& socket) {
  sockaddr_in address = local(0);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

template <class Read>
std::string read_all(bool once, const Read& read) {
  std::string all;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto got = read(buffer.data(), buffer.size());
    if (got <= 0) return all;
    all.append(buffer.data(), static_cast<std::size_t>(got));
    if (once) return all;
  }
}

}  // namespace

ControlNode::ControlNode(const security::TlsFiles& tls, core::Duration heartbeat, core::Duration lost_after)
    : options_{.tls = tls,
               .heartbeat = heartbeat,
               .lost_after = lost_after,
               .on_refused =
                   [this](const transport::RefusedConnection& refusal) {
                     const std::lock_guard lock(mutex_);
                     refusals_.push_back(refusal.why);
                     changed_.notify_all();
                   }},
      config_(options_),
      system_(config_) {
  auto network = Network::create(system_, options_);
  if (!network) throw std::runtime_error(network.error().message);
  network_ = std::move(*network);
}

ControlNode::~ControlNode() {
  for (const auto& greeter : greeters_) caf::anon_send(greeter, Halt{});
}

std::uint16_t ControlNode::serve(const std::string& name) {
  greeters_.push_back(system_.spawn(greet, name));
  const auto port = network_->publish(greeters_.back(), {"127.0.0.1", 0});
  if (!port) throw std::runtime_error(port.error().message);
  return *port;
}

std::string ControlNode::ask(const Greeter& greeter) {
  std::string answer;
  caf::scoped_actor self(system_);
  self->request(greeter, std::chrono::duration_cast<std::chrono::milliseconds>(kSoon), Prepare{})
      .receive([&](const SiteAddress& address) { answer = address.text; },
               [&](const caf::error& error) { answer = system_.render(error); });
  return answer;
}

std::string ControlNode::ask(std::uint16_t port) {
  const auto greeter = network_->connect<Greeter>({"127.0.0.1", port}, kSoon);
  return greeter ? ask(*greeter) : greeter.error().message;
}

std::string ControlNode::refusal() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kSoon, [this] { return !refusals_.empty(); })) return "";
  std::string first = refusals_.front();
  refusals_.erase(refusals_.begin());
  return first;
}

bool ControlNode::refused_nobody() {
  const std::lock_guard lock(mutex_);
  return refusals_.empty();
}

core::FileDescriptor connected(std::uint16_t port) {
  core::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in address = local(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect");
  return socket;
}

std::string say(std::uint16_t port, std::string_view bytes) {
  const auto socket = connected(port);
  (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return read_all(bytes.empty(), [&](char* to, std::size_t size) { return ::recv(socket.get(), to, size, 0); });
}

std::string say_over_tls(std::uint16_t port, const security::TlsFiles& tls, std::string_view bytes) {
  const auto socket = connected(port);
  const std::unique_ptr<SSL_CTX, security::Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  if (!tls.certificate.empty() &&
      (SSL_CTX_use_certificate_file(context.get(), tls.certificate.c_str(), SSL_FILETYPE_PEM) != 1 ||
       SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1))
    throw std::runtime_error(security::openssl_reason());
  const std::unique_ptr<SSL, security::Freed<SSL_free>> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket.get());
  if (SSL_connect(ssl.get()) != 1) return "";
  if (!bytes.empty()) SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size()));
  return read_all(bytes.empty(),
                  [&](char* to, std::size_t size) { return SSL_read(ssl.get(), to, static_cast<int>(size)); });
}

std::uint16_t free_port() { return bind_any(core::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))); }

SilentPort::SilentPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(bind_any(socket_)) {
  if (::listen(socket_.get(), 16) != 0) throw std::runtime_error("cannot listen");
}

Watch::Watch(ControlNode& node, std::uint16_t port) : node_(node), self_(node.system()) {
  auto found = node.network().connect<Greeter>({"127.0.0.1", port}, kSoon);
  if (!found) throw std::runtime_error(found.error().message);
  greeter_ = *found;
  self_->monitor(greeter_);
}

bool Watch::down() {
  bool down = false;
  self_->receive([&](const caf::down_msg&) { down = true; }, caf::after(kSoon) >> [] {});
  return down;
}

OtherProcess::OtherProcess(const security::TlsFiles& tls) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string ca = "TROUPE_TEST_CA=" + tls.ca;
  const std::string certificate = "TROUPE_TEST_CERTIFICATE=" + tls.certificate;
  const std::string key = "TROUPE_TEST_KEY=" + tls.key;
  const std::string descriptor = fmt::format("TROUPE_TEST_OUTPUT={}", out[1]);
  std::array<const char*, 5> environment{ca.c_str(), certificate.c_str(), key.c_str(), descriptor.c_str(), nullptr};
  std::array<const char*, 4> arguments{"actors_tests", "--gtest_filter=NetworkOtherProcess.DISABLED_Serves",
                                       "--gtest_also_run_disabled_tests", nullptr};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in[0], 0);
    ::fcntl(out[1], F_SETFD, 0);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::execve("/proc/self/exe", const_cast<char**>(arguments.data()), const_cast<char**>(environment.data()));
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  const auto got = ::read(out[0], &port_, sizeof port_);
  ::close(out[0]);
  if (got != sizeof port_) throw std::runtime_error("the other process did not start");
}

OtherProcess::~OtherProcess() {
  ::close(input_);
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void OtherProcess::signal(int number) const { ::kill(pid_, number); }

/// Not a test: the program of the process that OtherProcess starts.
TEST(NetworkOtherProcess, DISABLED_Serves) {
  const auto text = [](const char* name) { return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name)); };
  if (text("TROUPE_TEST_OUTPUT").empty()) return;
  ControlNode node({text("TROUPE_TEST_CA"), text("TROUPE_TEST_CERTIFICATE"), text("TROUPE_TEST_KEY")});
  const std::uint16_t port = node.serve("another process");
  ASSERT_EQ(::write(std::stoi(text("TROUPE_TEST_OUTPUT")), &port, sizeof port), static_cast<ssize_t>(sizeof port));
  char ignored = 0;
  while (::read(0, &ignored, 1) > 0) continue;
}

}  // namespace troupe::actors::testing
