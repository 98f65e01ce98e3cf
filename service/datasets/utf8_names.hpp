/// libarchive converts names by the locale of the thread, and in "C", which the program never leaves, it knows ASCII only. Thread rule: an
/// object belongs to the thread that makes it.
#pragma once

#include <clocale>

namespace troupe::service {

/// While this exists, names of files are UTF-8 for libarchive on the calling thread. Numbers and messages stay those of "C". Where the system
/// has no such locale it changes nothing.
class Utf8Names {
 public:
  Utf8Names();
  ~Utf8Names();
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  ::locale_t utf8_, before_{};
};

}  // namespace troupe::service
