#include "apps/top/full_screen.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "experiment/report/terminal.hpp"

namespace troupe::apps {
namespace {

constexpr std::array kReadSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
constexpr std::array kFatalSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// The other screen, no cursor, no line breaks at the edge; and back.
constexpr std::string_view kOtherScreen = "\x1b[?1049h", kModes = "\x1b[?25l\x1b[?7l\x1b[2J\x1b[H";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// What a handler of a fatal signal needs; it may call nothing but functions that are safe there.
termios terminal_before{};
std::atomic<bool> terminal_taken = false;

void put(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void give_back() noexcept {
  if (!terminal_taken.exchange(false)) return;
  put(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/// The handler is gone by then (SA_RESETHAND): the second time the signal has its usual effect.
void on_fatal(int signal) {
  give_back();
  ::raise(signal);
}

sigset_t read_signals() {
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : kReadSignals) ::sigaddset(&set, signal);
  return set;
}

bool takes_output() {
  constexpr int kPatience_ms = 1000;
  pollfd terminal{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&terminal, 1, kPatience_ms) > 0 && (terminal.revents & POLLOUT) != 0;
}

}  // namespace

bool has_screen() { return ::isatty(STDIN_FILENO) == 1 && report::is_live_terminal(stdout); }

void block_screen_signals() {
  const auto set = read_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

FullScreen::FullScreen() = default;

core::Result<void> FullScreen::open() {
  const auto set = read_signals();
  signals_ = core::FileDescriptor(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) return tl::unexpected(core::from_errno(errno, "read", "signals"));
  if (::tcgetattr(STDIN_FILENO, &terminal_before) != 0)
    return tl::unexpected(core::from_errno(errno, "read the settings of", "the terminal"));
  for (const int signal : kFatalSignals) {
    struct sigaction action {};
    action.sa_handler = on_fatal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(signal, &action, nullptr);
  }
  enter();
  return {};
}

FullScreen::~FullScreen() {
  leave();
  for (const int signal : kFatalSignals) ::signal(signal, SIG_DFL);
}

void FullScreen::enter() {
  terminal_taken = true;
  put(kOtherScreen);
  entered_ = true;
  set_modes();
}

void FullScreen::set_modes() {
  auto raw = terminal_before;
  ::cfmakeraw(&raw);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put(kModes);
  forget();
}

void FullScreen::leave() noexcept {
  if (std::exchange(entered_, false)) give_back();
}

void FullScreen::suspend() {
  leave();
  ::raise(SIGSTOP);  // returns when the process is continued
  ::tcgetattr(STDIN_FILENO, &terminal_before);
  enter();
}

FullScreen::Input FullScreen::wait(int waker, std::chrono::milliseconds at_most) {
  Input input;
  std::array<pollfd, 3> all{pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                            pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = waker, .events = POLLIN, .revents = 0}};
  if (::poll(all.data(), all.size(), static_cast<int>(at_most.count())) <= 0) return input;
  if (all[0].revents != 0) {
    std::array<char, 256> bytes{};
    const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count > 0) input.bytes.assign(bytes.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) input.ended = true;
  }
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
    const auto number = static_cast<int>(signal.ssi_signo);
    if (number == SIGTSTP) {
      input.suspend = true;
    } else if (number == SIGWINCH) {
      input.resized = true;
    } else if (number == SIGCONT) {  // who stopped it may have changed the terminal
      set_modes();
      input.resized = true;
    } else {
      input.ended = true;
      input.signal = number;
    }
  }
  std::uint64_t count = 0;
  if (all[2].revents != 0) [[maybe_unused]]
    const auto ignored = ::read(waker, &count, sizeof(count));
  return input;
}

ScreenSize FullScreen::size() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

void FullScreen::draw(const std::vector<ScreenRow>& rows, const ScreenSize& size, bool color) {
  if (size.columns != drawn_size_.columns || size.rows != drawn_size_.rows) forget();
  std::string text;
  if (drawn_.empty()) text += "\x1b[2J";
  const auto count = std::min(rows.size(), size.rows);
  drawn_.resize(std::max(drawn_.size(), count));
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    auto line = i < count ? rows[i].render(size.columns, color) : std::string();
    if (line == drawn_[i]) continue;
    text += fmt::format("\x1b[{};1H{}\x1b[K", i + 1, line);
    drawn_[i] = std::move(line);
  }
  drawn_.resize(count);
  drawn_size_ = size;
  if (text.empty()) return;
  if (takes_output())
    put(text);
  else
    forget();
}

}  // namespace troupe::apps
