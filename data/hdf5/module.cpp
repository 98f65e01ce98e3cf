// The exports of troupe_hdf5.so.
#include "data/hdf5/arrays.hpp"

extern "C" {

troupe::data::ArrayLibraryVersion troupe_array_library_version;
troupe::data::MakeArrayLibrary troupe_make_array_library;

int troupe_array_library_version() { return troupe::data::kArrayLibraryVersion; }

void troupe_make_array_library(std::shared_ptr<const troupe::data::ArrayLibrary>& made) {
  made = std::make_shared<const troupe::data::Hdf5Arrays>();
}
}
