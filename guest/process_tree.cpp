#include "guest/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace troupe::guest {
namespace {

constexpr int kDeepest = 1000;  // generations: process numbers are reused meanwhile, so a walk might not end

}  // namespace

pid_t parent_of(pid_t process) noexcept {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", process);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  std::array<char, 256> text{};
  const ssize_t count = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (count <= 0) return -1;
  const char* const name_end = std::strrchr(text.data(), ')');  // a name may have anything in it
  char state = 0;
  int parent = -1;
  if (name_end == nullptr || std::sscanf(name_end + 1, " %c %d", &state, &parent) != 2) return -1;
  return state == 'Z' || state == 'X' ? -1 : parent;
}

bool is_descendant(pid_t process, pid_t ancestor) noexcept {
  for (int generation = 0; generation < kDeepest && process > 0; ++generation, process = parent_of(process))
    if (process == ancestor) return true;
  return false;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  DIR* const processes = ::opendir("/proc");
  if (processes == nullptr) return children;
  while (const dirent* const entry = ::readdir(processes)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const auto process = static_cast<pid_t>(std::atol(entry->d_name));
    if (parent_of(process) == parent) children.push_back(process);
  }
  ::closedir(processes);
  return children;
}

}  // namespace troupe::guest
