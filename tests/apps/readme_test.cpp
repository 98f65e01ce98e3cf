// Every command of README.md runs as printed, in the order of the text: in a fresh directory, with the shipped configurations on little data.
//
// A block of commands is indented by four spaces and begins with a command. A block that cannot run here says so in a comment before it,
// which readers of the rendered page do not see: <!-- not run: it installs packages -->
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <regex>
#include <thread>

#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

constexpr int kTrainSamples = 640, kTestSamples = 100;

struct Block {
  int line = 0;  // of its first command
  std::vector<std::string> commands;
  std::string not_run;  // the reason in the comment before it
};

bool is_command(const std::string& line) {
  static const std::regex command(R"((build/bin/troupe|scripts/[a-z-]+|git|mpirun|srun|troupe)( .*)?)");
  return std::regex_match(line, command);
}

std::vector<Block> blocks_of(const std::string& path) {
  static const std::regex marker(R"(<!-- not run: (.+) -->)");
  std::vector<Block> blocks;
  std::ifstream file(path);
  std::string not_run;
  enum { text, commands, listing } inside = text;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("    ") && line.find_first_not_of(' ') != std::string::npos) {
      const auto code = line.substr(4);
      if (inside == text) {
        inside = is_command(code) ? commands : listing;
        if (inside == commands) blocks.push_back({.line = number, .commands = {}, .not_run = not_run});
      }
      if (inside == listing) continue;
      auto& all = blocks.back().commands;
      if (!all.empty() && all.back().ends_with('\\'))
        all.back() += '\n' + code;
      else
        all.push_back(code);
      continue;
    }
    inside = text;
    std::smatch reason;
    if (std::regex_match(line, reason, marker))
      not_run = reason[1];
    else if (!line.empty())
      not_run.clear();
  }
  return blocks;
}

/// MNIST's files with digits of stripes: class k has a bright row band at 2·k.
void write_idx(const std::string& directory, const std::string& name, int count) {
  fs::create_directories(directory);
  const auto number = [](std::ofstream& file, std::uint32_t value) {
    const std::array<char, 4> bytes{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                                    static_cast<char>(value >> 8), static_cast<char>(value)};
    file.write(bytes.data(), bytes.size());
  };
  std::ofstream images(directory + "/" + name + "-images-idx3-ubyte", std::ios::binary);
  for (const std::uint32_t value : {0x803U, static_cast<std::uint32_t>(count), 28U, 28U}) number(images, value);
  std::ofstream labels(directory + "/" + name + "-labels-idx1-ubyte", std::ios::binary);
  for (const std::uint32_t value : {0x801U, static_cast<std::uint32_t>(count)}) number(labels, value);
  for (int i = 0; i < count; ++i) {
    const int label = i * 7 % 10;
    labels.put(static_cast<char>(label));
    for (int pixel = 0; pixel < 28 * 28; ++pixel) {
      const bool bright = pixel / 28 / 2 == label + 2;
      images.put(static_cast<char>((bright ? 180 : 20) + (i + 31 * pixel) % 40));
    }
  }
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

/// A port of this host that is free now.
std::string free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  return bound ? std::to_string(::ntohs(address.sin_port)) : std::string();
}

class Readme : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path source(TROUPE_SOURCE_DIR), root(folder_.path());
    fs::create_directories(root / "build/bin");
    fs::create_symlink(TROUPE_BINARY, root / "build/bin/troupe");
    for (const auto& entry : fs::recursive_directory_iterator(source / "configs")) {
      if (!entry.is_regular_file()) continue;
      const auto name = fs::relative(entry.path(), source).string();
      folder_.write(name, small(contents(entry.path().string()), name));
    }
    write_idx(folder_.file("data/mnist"), "train", kTrainSamples);
    write_idx(folder_.file("data/mnist"), "t10k", kTestSamples);
  }

  /// A shipped configuration on little data; a grid with two values of each option.
  static std::string small(std::string text, const std::string& name) {
    if (name.starts_with("configs/clusters/")) return text;
    if (name.starts_with("configs/grids/"))
      return std::regex_replace(text, std::regex(R"(\[([^,\]\n]+, *[^,\]\n]+),[^\]\n]*\])"), "[$1]");
    text = std::regex_replace(text, std::regex("\nepochs = [0-9]+"), "\nepochs = 2");
    replace_all(text, "\n[data]\n",
                "\n[data]\ntrain_samples = " + std::to_string(kTrainSamples) +
                    "\ntest_samples = " + std::to_string(kTestSamples) + "\n");
    return text;
  }

  /// The newest run of this name, for `runs/<time>-NAME`.
  std::string run_named(const std::string& name) const {
    std::string newest;
    if (!fs::exists(folder_.file("runs"))) return newest;
    for (const auto& entry : fs::directory_iterator(folder_.file("runs"))) {
      const auto file = entry.path().filename().string();
      if (std::regex_match(file, std::regex("[0-9]{8}-[0-9]{6}-" + name + "(-[0-9]+)?")))
        newest = std::max(newest, file);
    }
    return newest;
  }

  /// The command with a directory, a run and ports of this test in the places that a reader fills in.
  std::string filled_in(std::string command) {
    replace_all(command, "/where/your/mnist/is", "data/mnist");
    static const std::regex run(R"(runs/<time>-([A-Za-z0-9_-]+))"), port(R"(127\.0\.0\.1:([0-9]+))");
    std::smatch found;
    while (std::regex_search(command, found, run)) {
      const auto named = run_named(found[1]);
      EXPECT_FALSE(named.empty()) << "no earlier command made the run of: " << command;
      command = found.prefix().str() + "runs/" + named + found.suffix().str();
    }
    std::string filled;
    for (auto rest = command; std::regex_search(rest, found, port); rest = command) {
      auto& here = ports_[found[1]];
      if (here.empty()) here = free_port();
      filled += found.prefix().str() + "127.0.0.1:" + here;
      command = found.suffix();
    }
    return filled + command;
  }

  /// Why this machine cannot run it; empty: it can.
  static std::string missing(const std::string& command) {
    const auto first = command.substr(0, command.find(' '));
    if (run_program({"bash", "-c", "command -v " + first}).code != 0 && first.find('/') == std::string::npos)
      return first + " is not installed";
    if (command.starts_with("build/bin/troupe data fetch ")) return "it needs the web";
    static const std::regex draws("build/bin/troupe (plot|compare) .*");
    if (std::regex_match(command, draws) && run_program({"gnuplot", "--version"}).code != 0)
      return "gnuplot is not installed";
    std::smatch ranks;
    if (first == "srun" && std::regex_search(command, ranks, std::regex(" -n ([0-9]+)")) &&
        run_program({"timeout", "20", "srun", "--test-only", "-n", ranks[1], "true"}).code != 0)
      return "no Slurm here can start so many tasks";
    if (first == "mpirun" && command.find("--oversubscribe") == std::string::npos &&
        std::regex_search(command, ranks, std::regex(" -n ([0-9]+)")) &&
        std::stoul(ranks[1]) > std::thread::hardware_concurrency())
      return "mpirun wants a core for each rank";
    return {};
  }

  /// Runs the commands of a block in one shell, so that what one leaves in the background serves the next. The first command that fails
  /// ends it.
  void run(const Block& block) {
    std::string script = "cd '" + folder_.path() + "'\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n";
    for (const auto& command : block.commands) {
      const auto line = filled_in(command);
      if (const auto why = missing(line); !why.empty()) {
        std::cout << "README: not run, " << why << ": " << command << "\n";
        continue;
      }
      ++commands_;
      // Two runs that begin in one second would be called runs/<time>-NAME and runs/<time>-NAME-2: no reader is so fast.
      if (line.find(" train ") != std::string::npos)
        script += "while compgen -G \"runs/$(date +%Y%m%d-%H%M%S)-*\" >/dev/null; do read -rt 0.05 <> <(:); done\n";
      script += line + "\ncode=$?\n[ $code = 0 ] || { echo \"README: exit code $code\"; exit 1; } >&2\n";
      std::smatch background;
      if (std::regex_search(line, background, std::regex(R"(--listen 127\.0\.0\.1:([0-9]+) &)")))
        script += until_open(background[1]);
      // A later command may name the run that this one makes.
      if (&command != &block.commands.back() && line.find(" &") == std::string::npos && needs_result(block, command)) {
        execute(block, script);
        script = "cd '" + folder_.path() + "'\n";
      }
    }
    execute(block, script);
  }

  /// Whether a command after `command` names a run: it is filled in when that run is there.
  static bool needs_result(const Block& block, const std::string& command) {
    const auto next = std::find(block.commands.begin(), block.commands.end(), command) + 1;
    return std::any_of(next, block.commands.end(),
                       [](const std::string& c) { return c.find("<time>") != std::string::npos; });
  }

  static std::string until_open(const std::string& port) {
    return "for try in {1..300}; do (exec 3<>/dev/tcp/127.0.0.1/" + port +
           ") 2>/dev/null && break; read -rt 0.1 <> <(:); done\n";
  }

  static void execute(const Block& block, const std::string& script) {
    // Containers run as root, which mpirun refuses otherwise.
    auto outcome =
        run_program({"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "bash", "-c", script});
    EXPECT_EQ(outcome.code, 0) << "README.md:" << block.line << "\n" << script << outcome.out << outcome.err;
  }

  TemporaryDirectory folder_;
  std::map<std::string, std::string> ports_;  // printed → free
  int commands_ = 0;
};

TEST_F(Readme, EveryCommandRunsAsPrinted) {
  for (const auto& block : blocks_of(TROUPE_SOURCE_DIR "/README.md")) {
    SCOPED_TRACE(block.commands.front());
    if (!block.not_run.empty())
      std::cout << "README: not run, " << block.not_run << ": " << block.commands.front() << "\n";
    else
      run(block);
  }
  EXPECT_GE(commands_, 20);
}

}  // namespace
}  // namespace troupe::apps
