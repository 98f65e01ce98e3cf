#include <csignal>

#include "apps/command_line.hpp"

int main(int argc, char** argv) {
  std::signal(SIGCHLD, SIG_DFL);  // who starts Troupe may ignore it, and then no child's end could be learned
  return troupe::apps::run(argc, argv);
}
