#include "data/hdf5/handles.hpp"

#include <string_view>

namespace troupe::data {
namespace {

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// The first entry is where it failed, the others only passed it on.
herr_t note_first(unsigned entry, const H5E_error2_t* error, void* reason) {
  constexpr std::size_t kMost = 200;  // characters
  if (entry > 0 || !error->desc) return 0;
  for (const char c : std::string_view(error->desc).substr(0, kMost))
    *static_cast<std::string*>(reason) += c >= ' ' && c <= '~' ? c : '?';
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(hdf5_mutex()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // of this thread, where the library knows threads
  H5PLset_loading_state(0);
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_first, &reason);
  return reason.empty() ? "no reason given" : reason;
}

}  // namespace troupe::data
