#include "guest/package.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>

namespace troupe::guest {

GuestProcess::Variables with_package(GuestProcess::Variables variables) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto* place : {"../share/troupe/python", "../python", "../../python"}) {
    const auto path = fs::weakly_canonical(folder / place, error);
    if (error || !fs::exists(path / "troupe" / "__init__.py", error)) continue;
    const char* const own = std::getenv("PYTHONPATH");
    variables.emplace_back("PYTHONPATH",
                           own != nullptr && *own != '\0' ? std::string(own) + ":" + path.string() : path.string());
    break;
  }
  return variables;
}

}  // namespace troupe::guest
